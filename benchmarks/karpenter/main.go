// Decides as Karpenter does, on a cluster in a file, until there is nothing left to do, and prints figures as JSON.
//
// A command is carried out at once and in memory: nodes go, their pods are where Karpenter's simulation placed them,
// and a new node is the cheapest that its NodeClaim allows.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
)

// figures are what is printed.
type figures struct {
	Candidates          int     `json:"candidates"`
	Looked              int     `json:"looked"`
	SecondsPerCandidate float64 `json:"secondsPerCandidate"`
	Before              float64 `json:"before"`
	End                 float64 `json:"end"`
	Nodes               int     `json:"nodes"`
	Commands            int     `json:"commands"`
	Launched            int     `json:"launched"`
	Evictions           int     `json:"evictions"`
	DecisionSeconds     float64 `json:"decisionSeconds"`
	Finished            bool    `json:"finished"`
}

func main() {
	file := flag.String("cluster", "", "a cluster, as kubectl get -o json prints it")
	sample := flag.Int("sample", 50, "how many candidates to look at one by one")
	limit := flag.Duration("limit", 10*time.Minute, "for all decisions together")
	flag.Parse()
	ctx := withDefaults(log.IntoContext(context.Background(), logging.NopLogger))
	b := newBench(ctx, lo.Must(kwok.ConstructInstanceTypes(ctx)))
	b.load(ctx, *file)
	found := figures{Before: b.price(ctx)}
	b.look(ctx, *sample, &found)
	b.decide(ctx, *limit, &found)
	found.End, found.Nodes = b.price(ctx), len(b.cluster.DeepCopyNodes())
	lo.Must0(json.NewEncoder(os.Stdout).Encode(found))
}

// withDefaults has the options of Karpenter and of its provider when nobody gives any.
func withDefaults(ctx context.Context) context.Context {
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	for _, known := range options.Injectables {
		known.AddFlags(flags)
	}
	for _, known := range options.Injectables {
		lo.Must0(known.Parse(flags))
		ctx = known.ToContext(ctx)
	}
	return ctx
}

// silent drops Events.
type silent struct{}

func (silent) Publish(...events.Event) {}

// sure takes a command without a second look, which would wait for 15 s before.
type sure struct{}

func (sure) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}

type bench struct {
	memory      *memory
	provider    cloudprovider.CloudProvider
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	queue       *disruption.Queue
	cost        *cost.ClusterCost
	methods     []disruption.Method
	made        int
}

func newBench(ctx context.Context, types []*cloudprovider.InstanceType) *bench {
	b := &bench{memory: newMemory(scheme.Scheme)}
	b.provider = kwok.NewCloudProvider(ctx, b.memory, types)
	clk := clock.RealClock{}
	b.cluster = state.NewCluster(clk, b.memory, b.provider)
	b.cost = cost.NewClusterCost(ctx, b.provider, b.memory)
	b.provisioner = provisioning.NewProvisioner(b.memory, silent{}, b.provider, b.cluster, clk,
		deviceallocation.NewController(b.memory), virtualpods.NewVirtualPodCache(b.memory))
	b.queue = disruption.NewQueue(b.memory, silent{}, b.cluster, clk, b.provisioner)
	c := disruption.MakeConsolidation(clk, b.cluster, b.memory, b.provisioner, b.provider, silent{}, b.queue)
	b.methods = []disruption.Method{
		disruption.NewEmptiness(c, disruption.WithValidator(sure{})),
		disruption.NewMultiNodeConsolidation(c, disruption.WithValidator(sure{})),
		disruption.NewSingleNodeConsolidation(c, disruption.WithValidator(sure{})),
	}
	return b
}

// load reads objects and tells the cluster's state of them, as Karpenter's informers do.
func (b *bench) load(ctx context.Context, path string) {
	list := struct{ Items []json.RawMessage }{}
	lo.Must0(json.Unmarshal(lo.Must(os.ReadFile(path)), &list))
	pods := []*corev1.Pod{}
	for _, raw := range list.Items {
		object := lo.Must(runtime.Decode(scheme.Codecs.UniversalDeserializer(), raw)).(client.Object)
		b.memory.put(object)
		switch known := object.(type) {
		case *v1.NodePool:
			b.cost.UpdateOfferings(ctx, known, lo.Must(b.provider.GetInstanceTypes(ctx, known)))
		case *v1.NodeClaim:
			b.cluster.UpdateNodeClaim(known)
			lo.Must0(b.cost.UpdateNodeClaim(ctx, known))
		case *corev1.Node:
			lo.Must0(b.cluster.UpdateNode(ctx, known))
		case *corev1.Pod:
			pods = append(pods, known)
		}
	}
	for _, pod := range pods {
		lo.Must0(b.cluster.UpdatePod(ctx, pod))
	}
	if !b.cluster.Synced(ctx) {
		panic("the state of the cluster does not have all that there is")
	}
}

// candidates are the nodes that a method may take, with what it needs to know of their pools.
func (b *bench) candidates(ctx context.Context, method disruption.Method) []*disruption.Candidate {
	found, totals, err := disruption.GetCandidatesWithTotals(ctx, b.cluster, b.memory, silent{}, clock.RealClock{},
		b.provider, method.ShouldDisrupt, method.Class(), b.queue, b.cost)
	lo.Must0(err)
	if setter, ok := method.(disruption.NodePoolTotalsSetter); ok {
		setter.SetNodePoolTotals(totals)
	}
	return found
}

// look asks of some candidates, one by one, where their pods would go: what a decision consists of.
func (b *bench) look(ctx context.Context, most int, found *figures) {
	all := b.candidates(ctx, b.methods[len(b.methods)-1])
	sort.Slice(all, func(i, j int) bool { return all[i].Name() < all[j].Name() })
	step := max(1, len(all)/most)
	began := time.Now()
	for i := 0; i < len(all); i += step {
		lo.Must(disruption.SimulateScheduling(ctx, b.memory, b.cluster, b.provisioner, clock.RealClock{}, silent{},
			[]scheduling.Options{scheduling.IsConsolidationSimulation}, disruption.SimulationOptions{}, all[i]))
		found.Looked++
	}
	found.Candidates = len(all)
	if found.Looked > 0 {
		found.SecondsPerCandidate = time.Since(began).Seconds() / float64(found.Looked)
	}
}

// decide carries out commands until no method has one.
func (b *bench) decide(ctx context.Context, limit time.Duration, found *figures) {
	spent := time.Duration(0)
	for spent < limit {
		began := time.Now()
		commands := b.commands(ctx)
		spent += time.Since(began)
		found.DecisionSeconds = spent.Seconds()
		if len(commands) == 0 {
			found.Finished = true
			return
		}
		for _, command := range commands {
			b.carryOut(ctx, command, found)
		}
		fmt.Fprintf(os.Stderr, "%s of decisions, %d commands, %d nodes\n", spent.Round(time.Second), found.Commands,
			len(b.cluster.DeepCopyNodes()))
		b.cluster.MarkUnconsolidated()
	}
}

// commands are those of the first method that has any.
func (b *bench) commands(ctx context.Context) []disruption.Command {
	for _, method := range b.methods {
		candidates := b.candidates(ctx, method)
		if len(candidates) == 0 {
			continue
		}
		budgets := lo.Must(disruption.BuildDisruptionBudgetMapping(ctx, b.cluster, clock.RealClock{}, b.memory, b.provider, silent{}, method.Reason()))
		found := lo.Filter(lo.Must(method.ComputeCommands(ctx, budgets, candidates...)), func(c disruption.Command, _ int) bool {
			return c.Decision() != disruption.NoOpDecision
		})
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func (b *bench) price(ctx context.Context) float64 {
	pools := &v1.NodePoolList{}
	lo.Must0(b.memory.List(ctx, pools))
	return lo.SumBy(pools.Items, func(pool v1.NodePool) float64 { return b.cost.GetNodepoolCost(&pool) })
}

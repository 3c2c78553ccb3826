package main

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	pools "sigs.k8s.io/karpenter/pkg/scheduling"
)

// carryOut moves pods as the simulation of a command did, launches its nodes and removes its candidates.
func (b *bench) carryOut(ctx context.Context, command disruption.Command, found *figures) {
	found.Commands++
	targets := map[types.NamespacedName]string{}
	for _, existing := range command.Results.ExistingNodes {
		for _, pod := range existing.Pods {
			targets[client.ObjectKeyFromObject(pod)] = existing.Name()
		}
	}
	for _, replacement := range command.Replacements {
		name := b.launch(ctx, replacement.NodeClaim)
		found.Launched++
		for _, pod := range replacement.Pods {
			targets[client.ObjectKeyFromObject(pod)] = name
		}
	}
	for _, candidate := range command.Candidates {
		there := &corev1.PodList{}
		lo.Must0(b.memory.List(ctx, there, client.MatchingFields{"spec.nodeName": candidate.Name()}))
		for i := range there.Items {
			b.move(ctx, &there.Items[i], targets)
			found.Evictions++
		}
		b.remove(ctx, candidate)
	}
}

func (b *bench) move(ctx context.Context, pod *corev1.Pod, targets map[types.NamespacedName]string) {
	key := client.ObjectKeyFromObject(pod)
	target, ok := targets[key]
	if !ok {
		panic(fmt.Sprintf("the command has no place for pod %s", key))
	}
	b.cluster.DeletePod(key)
	pod.Spec.NodeName = target
	b.memory.put(pod)
	lo.Must0(b.cluster.UpdatePod(ctx, pod))
}

func (b *bench) remove(ctx context.Context, candidate *disruption.Candidate) {
	b.memory.remove(candidate.NodeClaim)
	b.memory.remove(candidate.Node)
	b.cluster.DeleteNodeClaim(candidate.NodeClaim.Name)
	b.cluster.DeleteNode(candidate.Node.Name)
	lo.Must0(b.cost.DeleteNodeClaim(ctx, client.ObjectKeyFromObject(candidate.NodeClaim)))
}

// launch makes the cheapest node that a claim allows, ready at once, as the KWOK provider chooses it.
func (b *bench) launch(ctx context.Context, wanted *scheduling.NodeClaim) string {
	b.made++
	name := fmt.Sprintf("new-%05d", b.made)
	kind := wanted.InstanceTypeOptions.OrderByPrice(wanted.Requirements)[0]
	offering := kind.Offerings.Available().Compatible(wanted.Requirements).Cheapest()
	labels := map[string]string{
		corev1.LabelHostname:           name,
		corev1.LabelInstanceTypeStable: kind.Name,
		v1.NodePoolLabelKey:            wanted.NodePoolName,
		v1.NodeRegisteredLabelKey:      "true",
		v1.NodeInitializedLabelKey:     "true",
	}
	for _, requirements := range []pools.Requirements{kind.Requirements, offering.Requirements} {
		for key, requirement := range requirements {
			if requirement.Len() == 1 && requirement.Operator() == corev1.NodeSelectorOpIn {
				labels[key] = requirement.Values()[0]
			}
		}
	}
	provider := "kwok://" + name
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.Now()},
		Spec:       wanted.Spec,
		Status: v1.NodeClaimStatus{
			NodeName: name, ProviderID: provider, Capacity: kind.Capacity, Allocatable: kind.Allocatable(),
		},
	}
	for _, condition := range []string{
		v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized, v1.ConditionTypeConsolidatable,
	} {
		claim.StatusConditions().SetTrue(condition)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.NewTime(time.Now())},
		Spec:       corev1.NodeSpec{ProviderID: provider},
		Status: corev1.NodeStatus{
			Capacity: kind.Capacity, Allocatable: kind.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	b.memory.put(claim)
	b.memory.put(node)
	b.cluster.UpdateNodeClaim(claim)
	lo.Must0(b.cost.UpdateNodeClaim(ctx, claim))
	lo.Must0(b.cluster.UpdateNode(ctx, node))
	return name
}

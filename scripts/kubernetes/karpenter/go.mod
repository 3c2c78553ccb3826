// Karpenter for scripts/ensure-karpenter: its suites and programs are built in its own module, with what that pins.
module karpool.sh/tests/karpenter

go 1.26.9

require sigs.k8s.io/karpenter v1.15.0

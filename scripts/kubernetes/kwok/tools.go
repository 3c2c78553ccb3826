//go:build tools

// Package kwok names the programs that are built here, so that go.mod lists what they need.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)

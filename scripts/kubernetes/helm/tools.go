//go:build tools

// Package helm names the programs that are built here, so that go.mod lists what they need.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)

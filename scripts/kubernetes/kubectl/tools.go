//go:build tools

// Package kubectl names the program that is built here, so that go.mod lists what it needs.
package kubectl

import (
	_ "k8s.io/kubernetes/cmd/kubectl"
)

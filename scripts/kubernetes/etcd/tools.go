//go:build tools

// Package etcd names the programs that are built here, so that go.mod lists what they need.
package etcd

import (
	_ "go.etcd.io/etcd/server/v3"
)

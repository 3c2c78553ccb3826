package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// memory is a client that reads from memory as the caches of a controller do: by index, and copies. It does not write.
type memory struct {
	client.Client
	scheme  *runtime.Scheme
	objects map[schema.GroupVersionKind]map[client.ObjectKey]client.Object
	// index has the keys of objects by kind, field and value.
	index map[string][]client.ObjectKey
}

func newMemory(scheme *runtime.Scheme) *memory {
	return &memory{
		scheme:  scheme,
		objects: map[schema.GroupVersionKind]map[client.ObjectKey]client.Object{},
		index:   map[string][]client.ObjectKey{},
	}
}

// indexed are the fields by which Karpenter looks for objects, with their values.
func indexed(object client.Object) map[string]string {
	switch known := object.(type) {
	case *corev1.Pod:
		return map[string]string{"spec.nodeName": known.Spec.NodeName}
	case *corev1.Node:
		return map[string]string{"spec.providerID": known.Spec.ProviderID}
	case *v1.NodeClaim:
		return map[string]string{"status.providerID": known.Status.ProviderID}
	}
	return nil
}

func place(kind schema.GroupVersionKind, field, value string) string {
	return fmt.Sprintf("%s/%s=%s", kind.Kind, field, value)
}

func (m *memory) kindOf(object runtime.Object) schema.GroupVersionKind {
	kind, err := apiutil.GVKForObject(object, m.scheme)
	if err != nil {
		panic(err)
	}
	return kind
}

// put stores an object in the place of the one with its name.
func (m *memory) put(object client.Object) {
	m.remove(object)
	kind, key := m.kindOf(object), client.ObjectKeyFromObject(object)
	if m.objects[kind] == nil {
		m.objects[kind] = map[client.ObjectKey]client.Object{}
	}
	m.objects[kind][key] = object
	for field, value := range indexed(object) {
		at := place(kind, field, value)
		m.index[at] = append(m.index[at], key)
	}
}

// remove forgets an object, if it is known.
func (m *memory) remove(object client.Object) {
	kind, key := m.kindOf(object), client.ObjectKeyFromObject(object)
	known, ok := m.objects[kind][key]
	if !ok {
		return
	}
	delete(m.objects[kind], key)
	for field, value := range indexed(known) {
		at := place(kind, field, value)
		m.index[at] = slices.DeleteFunc(m.index[at], func(other client.ObjectKey) bool { return other == key })
	}
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := m.kindOf(into)
	known, ok := m.objects[kind][key]
	if !ok {
		return errors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	return m.scheme.Convert(known.DeepCopyObject(), into, nil)
}

func (m *memory) List(_ context.Context, into client.ObjectList, given ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(given)
	kind := m.kindOf(into)
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	found := []runtime.Object{}
	add := func(object client.Object) {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace {
			return
		}
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labelsOf(object)) {
			return
		}
		if options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy {
			found = append(found, object)
			return
		}
		found = append(found, object.DeepCopyObject())
	}
	if options.FieldSelector != nil && !options.FieldSelector.Empty() {
		for _, key := range m.keys(kind, options.FieldSelector) {
			add(m.objects[kind][key])
		}
	} else {
		for _, object := range m.objects[kind] {
			add(object)
		}
	}
	return meta.SetList(into, found)
}

// keys are those of the objects whose fields have these values, by an index alone.
func (m *memory) keys(kind schema.GroupVersionKind, wanted fields.Selector) []client.ObjectKey {
	for _, one := range wanted.Requirements() {
		if found, ok := m.index[place(kind, one.Field, one.Value)]; ok {
			return found
		}
	}
	return nil
}

func (m *memory) Scheme() *runtime.Scheme { return m.scheme }

type labelSet map[string]string

func labelsOf(object client.Object) labelSet { return object.GetLabels() }

func (l labelSet) Has(label string) bool { _, ok := l[label]; return ok }

func (l labelSet) Get(label string) string { return l[label] }

func (l labelSet) Lookup(label string) (string, bool) { value, ok := l[label]; return value, ok }

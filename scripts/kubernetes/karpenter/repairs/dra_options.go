// Added to Karpenter's DRAConfigs before its dra suite and driver are built. Their scheme knows the kinds of the group,
// but not the options of requests, without which no client can create, list or delete them.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})
}

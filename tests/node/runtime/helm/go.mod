module jackfield/tests/helm

go 1.26.0

require helm.sh/helm/v3 v3.21.4

// The patch release that the control plane is of: built once for both.
require (
	k8s.io/api v0.36.3
	k8s.io/apiextensions-apiserver v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/apiserver v0.36.3
	k8s.io/cli-runtime v0.36.3
	k8s.io/client-go v0.36.3
	k8s.io/component-base v0.36.3
	k8s.io/kubectl v0.36.3
)

// dra-driver answers kubelet as a DRA driver with one device does (DRA plugin API v1). In Go, since
// kubelet's :authority for these sockets is one that stricter HTTP/2 servers refuse.
//
//	dra-driver DRIVER POOL DEVICE
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const kubelet = "/var/lib/kubelet"

type driver struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	name, pool, device, socket string
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DRAPlugin, Name: d.name, Endpoint: d.socket,
		SupportedVersions: []string{dra.DRAPluginService},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// Whatever claim is prepared, it has the only device.
func (d *driver) NodePrepareResources(_ context.Context, request *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	response := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, claim := range request.Claims {
		log.Printf("prepare %s/%s", claim.Namespace, claim.Name)
		response.Claims[claim.Uid] = &dra.NodePrepareResourceResponse{Devices: []*dra.Device{
			{RequestNames: []string{"nic"}, PoolName: d.pool, DeviceName: d.device},
		}}
	}
	return response, nil
}

func (d *driver) NodeUnprepareResources(_ context.Context, request *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	response := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, claim := range request.Claims {
		log.Printf("unprepare %s/%s", claim.Namespace, claim.Name)
		response.Claims[claim.Uid] = &dra.NodeUnprepareResourceResponse{}
	}
	return response, nil
}

func main() {
	d := &driver{name: os.Args[1], pool: os.Args[2], device: os.Args[3]}
	d.socket = filepath.Join(kubelet, "plugins", d.name, "dra.sock")
	server := grpc.NewServer()
	dra.RegisterDRAPluginServer(server, d)
	registration.RegisterRegistrationServer(server, d)
	// kubelet takes a socket that appears for one that is served.
	go serve(server, d.socket)
	serve(server, filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock"))
}

func serve(server *grpc.Server, path string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.Serve(listener))
}

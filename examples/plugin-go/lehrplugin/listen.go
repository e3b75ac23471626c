package lehrplugin

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Listen serves a plugin with a life cycle of its own at HOST:PORT, until SIGTERM. Lehr and the plugin show each other
// certificates: `folder` has tls.crt and tls.key of the plugin, and ca.crt, by which Lehr's must be signed. They are read
// for each connection, so that they can be renewed.
func Listen(plugin Plugin, address, folder string) error {
	if _, err := mutual(folder); err != nil {
		return err // now, and not when Lehr calls
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	program := newProgram(plugin, grpc.Creds(certificates(folder)))
	served := make(chan error, 1)
	go func() { served <- program.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-signalled():
		program.drain(drainTime)
		return nil
	}
}

func certificates(folder string) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return mutual(folder) },
	})
}

func mutual(folder string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(folder, "ca.crt"))
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		NextProtos:   []string{"h2"},
	}, nil
}

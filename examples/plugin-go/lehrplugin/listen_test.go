package lehrplugin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pb "lehr.dev/plugin/v1"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	t           *testing.T
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key, t}
}

// folder has a certificate of this authority, and trusts this one.
func (a *authority) folder(name string) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	folder := a.t.TempDir()
	for file, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: made},
		"tls.key": {Type: "EC PRIVATE KEY", Bytes: private},
		"ca.crt":  {Type: "CERTIFICATE", Bytes: a.certificate.Raw},
	} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return folder
}

func TestOnlyThoseWithACertificateAreServed(t *testing.T) {
	known, stranger := newAuthority(t), newAuthority(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	program := newProgram(&fake{}, grpc.Creds(certificates(known.folder("zones.example"))))
	go program.Serve(listener)
	defer program.Stop()

	describe := func(client *tls.Config) error {
		client.ServerName, client.RootCAs = "zones.example", x509.NewCertPool()
		client.RootCAs.AddCert(known.certificate)
		option := grpc.WithTransportCredentials(credentials.NewTLS(client))
		connection, err := grpc.Dial(listener.Addr().String(), option)
		if err != nil {
			return err
		}
		defer connection.Close()
		_, err = pb.NewPluginClient(connection).Describe(context.Background(), &pb.DescribeRequest{})
		return err
	}
	if err := describe(&tls.Config{}); err == nil {
		t.Error("without a certificate, nobody is served")
	}
	for _, each := range []*authority{known, stranger} {
		own, err := mutual(each.folder("lehr"))
		if err != nil {
			t.Fatal(err)
		}
		if err := describe(&tls.Config{Certificates: own.Certificates}); (err == nil) != (each == known) {
			t.Error(each == known, err)
		}
	}
}

func TestAPluginWithoutCertificatesDoesNotStart(t *testing.T) {
	if err := Listen(&fake{}, "127.0.0.1:0", t.TempDir()); err == nil {
		t.Fatal("it must not listen")
	}
}

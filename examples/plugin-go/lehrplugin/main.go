package lehrplugin

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	pb "lehr.dev/plugin/v1"
)

const (
	cookieName, cookie = "LEHR_PLUGIN_COOKIE", "6c656872"
	protocol           = "1"
	drainTime          = 25 * time.Second
)

// Main serves the plugin until Lehr ends it, and exits.
//
// Lehr starts the program with a cookie, the protocol versions that it speaks and a folder that only this user can
// enter. The program listens there, and prints one line to standard output. Standard error is its log.
func Main(plugin Plugin) {
	if err := serve(plugin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(plugin Plugin) error {
	log.SetFlags(0) // Lehr's log has the time
	folder := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	if os.Getenv(cookieName) != cookie || folder == "" {
		return fmt.Errorf("%s is a plugin of Lehr, which starts it: see `lehr plugin --help`", plugin.Describe().Name)
	}
	if versions := os.Getenv("PLUGIN_PROTOCOL_VERSIONS"); !contains(strings.Split(versions, ","), protocol) {
		return fmt.Errorf("the plugin speaks version %s of the protocol, and Lehr %s", protocol, versions)
	}
	path := filepath.Join(folder, "plugin.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	program := newProgram(plugin)
	end := asked() // from now on: Lehr may end the program as soon as it is greeted
	served := make(chan error, 1)
	go func() { served <- program.Serve(listener) }()
	fmt.Printf("1|%s|unix|%s|grpc\n", protocol, path)
	select {
	case err := <-served:
		return err
	case <-end:
		program.drain(drainTime)
		return nil
	}
}

// program is the gRPC server, and what it takes to end it well.
type program struct {
	*grpc.Server
	health *health.Server
	server *server
	end    context.CancelFunc
}

func newProgram(plugin Plugin, options ...grpc.ServerOption) *program {
	ending, end := context.WithCancel(context.Background())
	p := &program{grpc.NewServer(options...), health.NewServer(), newServer(plugin, ending), end}
	pb.RegisterPluginServer(p.Server, p.server)
	grpc_health_v1.RegisterHealthServer(p.Server, p.health)
	return p
}

// drain ends the program: nothing new begins, and pushes under way have some time to end, also those that nobody
// listens to any more.
func (p *program) drain(most time.Duration) {
	p.health.Shutdown()
	p.end()
	done := make(chan struct{})
	go func() {
		p.GracefulStop()
		p.server.operations.wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(most):
		p.Stop()
	}
}

// asked is closed when the program should end: Lehr is gone, which closes standard input, or has sent SIGTERM.
func asked() <-chan struct{} {
	end, signals := make(chan struct{}), signalled()
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	go func() {
		select {
		case <-signals:
		case <-gone:
		}
		close(end)
	}()
	return end
}

func signalled() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	return signals
}

func contains(texts []string, wanted string) bool {
	for _, text := range texts {
		if strings.TrimSpace(text) == wanted {
			return true
		}
	}
	return false
}

package lehrplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "lehr.dev/plugin/v1"
)

// fake is a plugin whose answers the test gives.
type fake struct {
	diff func(context.Context, *Call) (*pb.Difference, error)
	push func(context.Context, *Push) (*pb.Outcome, error)
}

func (f *fake) Describe() *pb.DescribeResponse { return &pb.DescribeResponse{Name: "fake"} }

func (f *fake) Diff(ctx context.Context, call *Call) (*pb.Difference, error) {
	return f.diff(ctx, call)
}

func (f *fake) Push(ctx context.Context, push *Push) (*pb.Outcome, error) { return f.push(ctx, push) }

type fencedFake struct {
	fake
	fence *Fence
}

func (f *fencedFake) Fence() *Fence { return f.fence }

// served is a client of the plugin.
func served(t *testing.T, plugin Plugin) (pb.PluginClient, *program) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	program := newProgram(plugin)
	go program.Serve(listener)
	dial := func(ctx context.Context, path string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	connection, err := grpc.Dial(path, grpc.WithInsecure(), grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		connection.Close()
		program.Stop()
	})
	return pb.NewPluginClient(connection), program
}

func target(id string) *pb.Target {
	return &pb.Target{Partition: "web", Id: id, Type: "example.Thing", Goal: pb.Goal_GOAL_PRESENT}
}

func intentOf(ids ...string) *pb.Intent {
	intent := &pb.Intent{}
	for _, id := range ids {
		asset := &pb.Asset{Id: id, Exists: true, Type: "example.Thing", Payload: []byte(`{"size": 3}`)}
		intent.Assets = append(intent.Assets, asset)
	}
	return intent
}

func pushOf(id string, epoch uint64) *pb.PushRequest {
	operation := &pb.Operation{Id: id, Epoch: epoch, Partition: "web", Asset: "a"}
	return &pb.PushRequest{Target: target("a"), Intent: intentOf("a"), Operation: operation}
}

// ended is the last answer of a push, and the progress before it.
func ended(t *testing.T, client pb.PluginClient, request *pb.PushRequest) (*pb.PushResponse, []string) {
	t.Helper()
	stream, err := client.Push(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	var progress []string
	for {
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetProgress() == nil {
			return answer, progress
		}
		progress = append(progress, answer.GetProgress().Message)
	}
}

func stateOf(t *testing.T, client pb.PluginClient, request *pb.PushRequest) pb.StatusResponse_State {
	t.Helper()
	answer, err := client.Status(context.Background(), &pb.StatusRequest{Operation: request.Operation})
	if err != nil {
		t.Fatal(err)
	}
	return answer.State
}

func TestACallAsksForWhatItLacks(t *testing.T) {
	client, _ := served(t, &fake{diff: func(_ context.Context, call *Call) (*pb.Difference, error) {
		var thing struct{ Size int }
		if _, err := call.PayloadOf("b", "example.Thing", &thing); err != nil {
			return nil, err
		}
		secret, err := call.Secret("env:TOKEN")
		if err != nil {
			return nil, fmt.Errorf("no token: %w", err) // wrapped is as good
		}
		return &pb.Difference{Changes: []*pb.Change{Change("size", thing.Size, len(secret))}}, nil
	}})
	request := &pb.DiffRequest{Target: target("a"), Intent: intentOf("a"), Mark: []byte("1")}
	answer, err := client.Diff(context.Background(), request)
	if need := answer.GetNeed(); err != nil || strings.Join(need.GetAssets(), " ") != "b" {
		t.Fatal("the other asset is needed:", answer, err)
	}
	request.Intent = intentOf("a", "b")
	answer, err = client.Diff(context.Background(), request)
	if need := answer.GetNeed(); err != nil || strings.Join(need.GetSecrets(), " ") != "env:TOKEN" {
		t.Fatal("the secret is needed:", answer, err)
	}
	request.Intent.Secrets = []*pb.SecretValue{{Reference: "env:TOKEN", Value: []byte("hunter2")}}
	answer, err = client.Diff(context.Background(), request)
	if err != nil || string(answer.Mark) != "1" || len(answer.GetDifference().GetChanges()) != 1 {
		t.Fatal("nothing more is needed:", answer, err)
	}
}

func TestSecretsAreHiddenInErrorsAndMessages(t *testing.T) {
	client, _ := served(t, &fake{push: func(_ context.Context, push *Push) (*pb.Outcome, error) {
		push.Progress("with hunter2")
		return nil, errors.New("cannot log in:\n hunter2 is wrong")
	}})
	request := pushOf("1", 1)
	request.Intent.Secrets = []*pb.SecretValue{{Reference: "env:TOKEN", Value: []byte("hunter2\n")}}
	last, progress := ended(t, client, request)
	message := last.GetOutcome().GetMessage()
	if message != "cannot log in: [secret] is wrong" || progress[0] != "with [secret]" {
		t.Fatalf("%q after %q", message, progress)
	}
	if last.GetOutcome().Result != pb.Outcome_RESULT_UNKNOWN {
		t.Fatal("an error of another kind leaves the outcome unknown:", last)
	}
}

func TestAPushOutlivesItsStream(t *testing.T) {
	release, ended := make(chan struct{}), make(chan error)
	client, _ := served(t, &fake{push: func(ctx context.Context, push *Push) (*pb.Outcome, error) {
		push.Progress("begun")
		<-release
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // long enough to notice that the stream has ended
		}
		ended <- ctx.Err()
		return Done(), nil
	}})
	request := pushOf("1", 1)
	ctx, leave := context.WithCancel(context.Background())
	stream, err := client.Push(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Fatal("the stream is broken off:", err)
	}
	if state := stateOf(t, client, request); state != pb.StatusResponse_STATE_RUNNING {
		t.Fatal("the push runs on:", state)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Fatal("nothing asks the push to stop:", err)
	}
	for stateOf(t, client, request) != pb.StatusResponse_STATE_ENDED {
		time.Sleep(time.Millisecond)
	}
}

func TestAPushThatWasCalledEndedDoesNotBegin(t *testing.T) {
	client, _ := served(t, &fake{})
	request := pushOf("1", 1)
	if state := stateOf(t, client, request); state != pb.StatusResponse_STATE_ENDED {
		t.Fatal("an operation that never arrived has ended:", state)
	}
	last, _ := ended(t, client, request)
	if last.GetTrouble().GetKind() != pb.Trouble_KIND_FENCED {
		t.Fatal("it is refused:", last)
	}
}

func TestACancelStopsAPushAlsoIfItArrivesFirst(t *testing.T) {
	client, _ := served(t, &fake{push: func(ctx context.Context, push *Push) (*pb.Outcome, error) {
		push.Progress("begun")
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	cancel := func(request *pb.PushRequest, reason pb.CancelRequest_Reason) {
		_, err := client.Cancel(context.Background(), &pb.CancelRequest{Operation: request.Operation, Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		reason pb.CancelRequest_Reason
		result pb.Outcome_Result
	}{
		{pb.CancelRequest_REASON_SUPERSEDED, pb.Outcome_RESULT_FAILED},
		{pb.CancelRequest_REASON_TIMEOUT, pb.Outcome_RESULT_UNKNOWN},
	} {
		request := pushOf("during "+test.reason.String(), 1)
		stream, err := client.Push(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		cancel(request, test.reason)
		last, err := stream.Recv()
		if err != nil || last.GetOutcome().GetResult() != test.result {
			t.Fatalf("after %s: %v %v", test.reason, last, err)
		}
	}
	request := pushOf("before", 1)
	cancel(request, pb.CancelRequest_REASON_SUPERSEDED)
	last, progress := ended(t, client, request)
	if last.GetOutcome().GetMessage() != "superseded" || len(progress) != 0 {
		t.Fatal("it does not begin:", last, progress)
	}
}

func TestABugEndsOneCall(t *testing.T) {
	client, _ := served(t, &fake{
		diff: func(context.Context, *Call) (*pb.Difference, error) { panic("a bug") },
		push: func(context.Context, *Push) (*pb.Outcome, error) { panic("a bug") },
	})
	_, err := client.Diff(context.Background(), &pb.DiffRequest{Target: target("a")})
	if status.Code(err) != codes.Internal {
		t.Fatal("the diff has no answer:", err)
	}
	request := pushOf("1", 1)
	stream, err := client.Push(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Internal {
		t.Fatal("the push has no answer:", err)
	}
	if state := stateOf(t, client, request); state != pb.StatusResponse_STATE_ENDED {
		t.Fatal("it has ended:", state)
	}
}

func TestABatchLooksOnce(t *testing.T) {
	var looks int32
	client, _ := served(t, &fake{diff: func(_ context.Context, call *Call) (*pb.Difference, error) {
		size, err := Shared(call, "size", func() (int32, error) { return atomic.AddInt32(&looks, 1), nil })
		return &pb.Difference{Changes: []*pb.Change{Change(call.Target.Id, size, nil)}}, err
	}})
	request := &pb.DiffManyRequest{}
	for n := 0; n < 50; n++ {
		id := fmt.Sprint("a", n)
		request.Requests = append(request.Requests, &pb.DiffRequest{Target: target(id), Mark: []byte(id)})
	}
	for batch := 1; batch <= 2; batch++ {
		stream, err := client.DiffMany(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint32]bool{}
		for {
			answer, err := stream.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			change := answer.Response.GetDifference().Changes[0]
			if string(answer.Response.Mark) != fmt.Sprint("a", answer.Index) || seen[answer.Index] {
				t.Fatal("each request has its own answer:", answer)
			}
			if seen[answer.Index] = true; string(change.Intended) != fmt.Sprint(batch) {
				t.Fatal("a batch looks once:", change)
			}
		}
		if len(seen) != 50 {
			t.Fatal("all are answered:", len(seen))
		}
	}
}

func TestUnknownGoalsStall(t *testing.T) {
	client, _ := served(t, &fake{})
	for _, goal := range []pb.Goal{pb.Goal_GOAL_UNSPECIFIED, pb.Goal_GOAL_ABSENT, pb.Goal(99)} {
		request := pushOf(goal.String(), 1)
		request.Target.Goal = goal
		last, _ := ended(t, client, request)
		if last.GetTrouble().GetKind() != pb.Trouble_KIND_STALLED {
			t.Fatal("the push stalls:", last)
		}
	}
}

func TestALatePushOfAnotherProcessIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "fence")
	writes := 0
	commit := func(fence *Fence) *fencedFake {
		return &fencedFake{fake{push: func(ctx context.Context, push *Push) (*pb.Outcome, error) {
			return Done(), fence.Commit(ctx, push.Operation, func() error { writes++; return nil })
		}}, fence}
	}
	older, _ := served(t, commit(NewFence(folder)))
	newer, _ := served(t, commit(NewFence(folder)))

	lost := pushOf("lost", 1)
	if state := stateOf(t, newer, lost); state != pb.StatusResponse_STATE_ENDED {
		t.Fatal("another process may call it ended:", state)
	}
	for _, step := range []struct {
		client  pb.PluginClient
		request *pb.PushRequest
		refused bool
	}{
		{older, lost, true},
		{older, pushOf("1", 1), false},
		{newer, pushOf("2", 2), false},
		{older, pushOf("3", 1), true},
		{newer, pushOf("4", 2), false},
	} {
		before := writes
		last, _ := ended(t, step.client, step.request)
		refused := last.GetTrouble().GetKind() == pb.Trouble_KIND_FENCED
		if refused != step.refused || writes-before == 1 == step.refused {
			t.Fatalf("%s: %v after %d writes", step.request.Operation.Id, last, writes-before)
		}
	}
}

func TestTheProgramEndsOnceItsPushesHave(t *testing.T) {
	release := make(chan struct{})
	var wrote int32
	client, program := served(t, &fake{push: func(_ context.Context, push *Push) (*pb.Outcome, error) {
		push.Progress("begun")
		<-release
		atomic.StoreInt32(&wrote, 1)
		return Done(), nil
	}})
	ctx, leave := context.WithCancel(context.Background())
	stream, err := client.Push(ctx, pushOf("1", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	leave() // nobody listens any more
	drained := make(chan struct{})
	go func() {
		program.drain(time.Hour)
		close(drained)
	}()
	<-program.server.ending.Done()
	select {
	case <-drained:
		t.Fatal("the push has not ended")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	<-drained
	if atomic.LoadInt32(&wrote) != 1 {
		t.Fatal("the push has ended")
	}
}

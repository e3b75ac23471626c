package lehrplugin

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "lehr.dev/plugin/v1"
)

const (
	defaultTurns  = 16
	aliveInterval = 15 * time.Second
	mostProgress  = 256
)

// server answers the calls of the protocol by asking a Plugin.
type server struct {
	pb.UnimplementedPluginServer
	plugin      Plugin
	description *pb.DescribeResponse
	goals       map[pb.Goal]bool
	operations  *operations
	ending      context.Context // done when the program is about to end
}

func newServer(plugin Plugin, ending context.Context) *server {
	description := plugin.Describe()
	if description.Traits == nil {
		description.Traits = &pb.Traits{}
	}
	traits := description.Traits
	traits.Batches = true
	_, traits.Watches = plugin.(Watcher)
	_, traits.Discovers = plugin.(Discoverer)
	if _, fences := plugin.(Fencer); fences {
		traits.Fencing = pb.Fencing_FENCING_NATIVE
	}
	goals := map[pb.Goal]bool{pb.Goal_GOAL_PRESENT: true}
	for _, goal := range traits.Goals {
		goals[goal] = true
	}
	return &server{
		plugin: plugin, description: description, goals: goals, operations: newOperations(), ending: ending,
	}
}

func (s *server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return s.description, nil
}

func (s *server) Diff(ctx context.Context, request *pb.DiffRequest) (*pb.DiffResponse, error) {
	return s.diff(ctx, request, newSharedValues())
}

func (s *server) diff(
	ctx context.Context, request *pb.DiffRequest, shared *sharedValues,
) (answer *pb.DiffResponse, broken error) {
	defer recovered(&broken)
	answer = &pb.DiffResponse{Mark: request.Mark}
	call := newCall(request.Target, request.Intent, shared)
	var difference *pb.Difference
	err := s.knows(call.Target)
	if err == nil {
		difference, err = s.plugin.Diff(ctx, call)
	}
	switch {
	case errors.As(err, &needError{}):
		answer.Answer = &pb.DiffResponse_Need{Need: call.need}
	case err != nil:
		answer.Answer = &pb.DiffResponse_Trouble{Trouble: asTrouble(err, request.Intent.GetSecrets())}
	default:
		answer.Answer = &pb.DiffResponse_Difference{Difference: difference}
	}
	return answer, nil
}

// DiffMany compares in several goroutines. What calls of the batch share is made once.
func (s *server) DiffMany(request *pb.DiffManyRequest, stream pb.Plugin_DiffManyServer) error {
	shared := newSharedValues()
	answers := make(chan *pb.DiffManyResponse)
	indexes := make(chan int)
	var workers sync.WaitGroup
	for n := s.turns(); n > 0; n-- {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for index := range indexes {
				answer, err := s.diff(stream.Context(), request.Requests[index], shared)
				if err == nil { // else it is asked for alone, and reports its error there
					answers <- &pb.DiffManyResponse{Index: uint32(index), Response: answer}
				}
			}
		}()
	}
	go func() {
		for index := range request.Requests {
			indexes <- index
		}
		close(indexes)
		workers.Wait()
		close(answers)
	}()
	var failed error
	for answer := range answers { // to the end, or the goroutines would wait for ever
		if failed == nil {
			failed = stream.Send(answer)
		}
	}
	return failed
}

func (s *server) turns() int {
	if turns := s.description.Traits.Turns; turns > 0 {
		return int(turns)
	}
	return defaultTurns
}

// knows reports a goal that the plugin's traits do not name.
func (s *server) knows(target *pb.Target) error {
	if s.goals[target.Goal] {
		return nil
	}
	what := fmt.Sprintf("the plugin %s does not know the goal %s", s.description.Name, target.Goal)
	return Stalled(what, "its traits do not name it", "take the turndown back, or use a newer version of the plugin")
}

// Push runs the push apart from its stream: Lehr may stop listening, and production must not be left half-way.
func (s *server) Push(request *pb.PushRequest, stream pb.Plugin_PushServer) error {
	if request.Operation.GetId() == "" {
		return status.Error(codes.InvalidArgument, "a push has an operation")
	}
	ctx, cancel := context.WithCancel(context.Background())
	state, err := s.operations.begin(request.Operation.Id, cancel)
	if err != nil {
		cancel()
		return stream.Send(refusal(err, request))
	}
	progress := make(chan string, mostProgress)
	ended := make(chan struct{})
	var last *pb.PushResponse
	var broken error
	go func() {
		defer close(ended)
		defer s.operations.end(request.Operation.Id)
		defer cancel()
		last, broken = s.push(ctx, request, progress, state)
	}()
	for {
		select {
		case message := <-progress:
			if err := stream.Send(progressed(message)); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-ended:
			return sendRest(stream, progress, last, broken)
		}
	}
}

func sendRest(stream pb.Plugin_PushServer, progress <-chan string, last *pb.PushResponse, broken error) error {
	for len(progress) > 0 {
		if err := stream.Send(progressed(<-progress)); err != nil {
			return err
		}
	}
	if broken != nil {
		return broken
	}
	return stream.Send(last)
}

func (s *server) push(
	ctx context.Context, request *pb.PushRequest, progress chan<- string, state *operation,
) (last *pb.PushResponse, broken error) {
	defer recovered(&broken)
	call := newCall(request.Target, request.Intent, newSharedValues())
	push := &Push{Call: call, Operation: request.Operation, progress: progress, state: state}
	var outcome *pb.Outcome
	err := s.knows(call.Target)
	if err == nil {
		outcome, err = s.plugin.Push(ctx, push)
	}
	if errors.As(err, &needError{}) {
		return &pb.PushResponse{Event: &pb.PushResponse_Need{Need: call.need}}, nil
	}
	var problem *Problem
	if errors.As(err, &problem) {
		return troubled(err, request), nil
	}
	if err != nil {
		outcome = s.unknown(err, push)
	}
	outcome.Message = shown(outcome.Message, request.Intent.GetSecrets())
	return &pb.PushResponse{Event: &pb.PushResponse_Outcome{Outcome: outcome}}, nil
}

// unknown is the outcome of a push that returned an error of some other kind.
func (s *server) unknown(err error, push *Push) *pb.Outcome {
	if errors.Is(err, context.Canceled) && push.Superseded() {
		return &pb.Outcome{Result: pb.Outcome_RESULT_FAILED, Message: "superseded"}
	}
	return &pb.Outcome{Result: pb.Outcome_RESULT_UNKNOWN, Message: err.Error()}
}

// refusal is the end of a push that must not begin.
func refusal(err error, request *pb.PushRequest) *pb.PushResponse {
	if errors.Is(err, errSuperseded) {
		outcome := &pb.Outcome{Result: pb.Outcome_RESULT_FAILED, Message: err.Error()}
		return &pb.PushResponse{Event: &pb.PushResponse_Outcome{Outcome: outcome}}
	}
	return troubled(err, request)
}

func progressed(message string) *pb.PushResponse {
	return &pb.PushResponse{Event: &pb.PushResponse_Progress{Progress: &pb.Progress{Message: message}}}
}

func troubled(err error, request *pb.PushRequest) *pb.PushResponse {
	trouble := asTrouble(err, request.Intent.GetSecrets())
	return &pb.PushResponse{Event: &pb.PushResponse_Trouble{Trouble: trouble}}
}

func (s *server) Cancel(_ context.Context, request *pb.CancelRequest) (*pb.CancelResponse, error) {
	s.operations.cancel(request.Operation.GetId(), request.Reason)
	return &pb.CancelResponse{}, nil
}

func (s *server) Status(ctx context.Context, request *pb.StatusRequest) (*pb.StatusResponse, error) {
	if !s.operations.ended(request.Operation.GetId()) {
		return &pb.StatusResponse{State: pb.StatusResponse_STATE_RUNNING}, nil
	}
	if fencer, ok := s.plugin.(Fencer); ok {
		if err := fencer.Fence().End(ctx, request.Operation); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	return &pb.StatusResponse{State: pb.StatusResponse_STATE_ENDED}, nil
}

func (s *server) Watch(_ *pb.WatchRequest, stream pb.Plugin_WatchServer) error {
	watcher, ok := s.plugin.(Watcher)
	if !ok {
		return status.Error(codes.Unimplemented, "the plugin does not watch")
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	hints := make(chan Key)
	ended := make(chan error, 1)
	go func() {
		ended <- watcher.Watch(ctx, func(key Key) {
			select {
			case hints <- key:
			case <-ctx.Done():
			}
		})
	}()
	alive := time.NewTicker(aliveInterval)
	defer alive.Stop()
	for {
		event := &pb.WatchResponse{Event: &pb.WatchResponse_Alive{Alive: &pb.Alive{}}}
		select {
		case key := <-hints:
			event = hinted(key)
		case <-alive.C:
		case err := <-ended:
			return err
		case <-s.ending.Done():
			return nil
		}
		if err := stream.Send(event); err != nil {
			return err
		}
	}
}

func hinted(key Key) *pb.WatchResponse {
	if key.ID == "" {
		return &pb.WatchResponse{Event: &pb.WatchResponse_LookAtAll{LookAtAll: &pb.LookAtAll{}}}
	}
	changed := &pb.AssetKey{Partition: key.Partition, Id: key.ID}
	return &pb.WatchResponse{Event: &pb.WatchResponse_Changed{Changed: changed}}
}

func (s *server) Discover(request *pb.DiscoverRequest, stream pb.Plugin_DiscoverServer) (broken error) {
	defer recovered(&broken)
	discoverer, ok := s.plugin.(Discoverer)
	if !ok {
		return status.Error(codes.Unimplemented, "the plugin does not discover")
	}
	var failed error
	err := discoverer.Discover(stream.Context(), request.Query, request.Partition, func(found *pb.Found) {
		if failed == nil {
			failed = stream.Send(&pb.DiscoverResponse{Answer: &pb.DiscoverResponse_Found{Found: found}})
		}
	})
	if failed == nil && err != nil {
		trouble := &pb.DiscoverResponse_Trouble{Trouble: asTrouble(err, nil)}
		failed = stream.Send(&pb.DiscoverResponse{Answer: trouble})
	}
	return failed
}

// recovered turns a panic, which would end the program and all its calls, into the end of one call.
func recovered(broken *error) {
	if reason := recover(); reason != nil {
		log.Printf("panic: %v\n%s", reason, debug.Stack())
		*broken = status.Error(codes.Internal, "the plugin has a bug: see its log")
	}
}

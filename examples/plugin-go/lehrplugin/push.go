package lehrplugin

import (
	"errors"
	"sync"

	pb "lehr.dev/plugin/v1"
)

// A Push is a push that is under way.
//
// Its context ends when Lehr asks it to stop, never because Lehr has stopped listening. It stops where production is
// whole, and returns the context's error.
type Push struct {
	*Call
	// Operation identifies the push in logs of providers, and to a Fence.
	Operation *pb.Operation

	progress chan<- string
	state    *operation
}

// Progress reports progress, in one line, to people who watch. It never waits: of very many lines some are lost.
func (p *Push) Progress(message string) {
	select {
	case p.progress <- shown(message, p.intent.GetSecrets()):
	default:
	}
}

// Superseded is whether newer content has overtaken this push.
func (p *Push) Superseded() bool { return p.state.reason() == pb.CancelRequest_REASON_SUPERSEDED }

// Done is the outcome of a push after which the diff is empty.
func Done() *pb.Outcome { return &pb.Outcome{Result: pb.Outcome_RESULT_DONE} }

const mostRemembered = 4096

// errSuperseded ends a push that was cancelled before it began.
var errSuperseded = errors.New("superseded")

// operations knows the pushes that this process runs, and those that it must not begin any more: calls are not
// ordered, so Cancel or Status may overtake the Push that they are about.
type operations struct {
	mutex    sync.Mutex
	running  map[string]*operation
	refused  map[string]error // why, by id
	refusals []string         // oldest first
	idle     *sync.Cond
}

type operation struct {
	mutex   sync.Mutex
	why     pb.CancelRequest_Reason
	cancel  func()
	stopped bool
}

func newOperations() *operations {
	o := &operations{running: map[string]*operation{}, refused: map[string]error{}}
	o.idle = sync.NewCond(&o.mutex)
	return o
}

// begin notes that a push runs, or returns why it must not.
func (o *operations) begin(id string, cancel func()) (*operation, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if err := o.refused[id]; err != nil {
		return nil, err
	}
	if _, ok := o.running[id]; ok {
		return nil, Transient("the push is under way already", "", "")
	}
	run := &operation{cancel: cancel}
	o.running[id] = run
	return run, nil
}

func (o *operations) end(id string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.running, id)
	o.idle.Broadcast()
}

// cancel asks a push to stop.
func (o *operations) cancel(id string, reason pb.CancelRequest_Reason) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if run, ok := o.running[id]; ok {
		run.stop(reason)
		return
	}
	o.refuse(id, errSuperseded)
}

// ended is whether a push has ended. If so, it does not begin any more.
func (o *operations) ended(id string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, ok := o.running[id]; ok {
		return false
	}
	o.refuse(id, Fenced("the push came too late", "it was looked for before, and counts as ended"))
	return true
}

func (o *operations) refuse(id string, why error) {
	if o.refused[id] == nil {
		o.refusals = append(o.refusals, id)
	}
	o.refused[id] = why
	if len(o.refusals) > mostRemembered {
		delete(o.refused, o.refusals[0])
		o.refusals = o.refusals[1:]
	}
}

// wait returns when no push runs.
func (o *operations) wait() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for len(o.running) > 0 {
		o.idle.Wait()
	}
}

func (r *operation) stop(reason pb.CancelRequest_Reason) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.stopped {
		r.stopped, r.why = true, reason
		r.cancel()
	}
}

func (r *operation) reason() pb.CancelRequest_Reason {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.why
}

package lehrplugin

import (
	"encoding/json"
	"fmt"
	"sync"

	pb "lehr.dev/plugin/v1"
)

// A Call is a question about one asset, and everything that the plugin may look at to answer it.
//
// What a call lacks (another asset, an output, a secret) its methods report as an error: return it. Lehr then makes the
// same call again, with what was asked for.
type Call struct {
	// Target is what is compared or pushed.
	Target *pb.Target

	intent *pb.Intent
	need   *pb.Need
	shared *sharedValues
}

// need is returned while the call lacks something; what it lacks is in Call.need.
type needError struct{}

func (needError) Error() string { return "the plugin needs to see more of the intent" }

func newCall(target *pb.Target, intent *pb.Intent, shared *sharedValues) *Call {
	if target == nil {
		target = &pb.Target{}
	}
	return &Call{Target: target, intent: intent, need: &pb.Need{}, shared: shared}
}

// Payload decodes the payload of the target's asset into v.
func (c *Call) Payload(v any) error {
	_, err := c.PayloadOf(c.Target.Id, c.Target.Type, v)
	return err
}

// PayloadOf decodes the payload of the asset `id` into v, and returns the asset. It must be of type `kind`.
func (c *Call) PayloadOf(id, kind string, v any) (*pb.Asset, error) {
	asset, err := c.asset(id)
	if err != nil {
		return nil, err
	}
	if !asset.Exists {
		return nil, Stalled("there is no asset "+id, "", "declare it, or correct what names it")
	}
	if asset.Type != kind {
		why := fmt.Sprintf("its type is %s", asset.Type)
		return nil, Stalled(fmt.Sprintf("%s is not of type %s", id, kind), why, "correct what names it")
	}
	if err := json.Unmarshal(asset.Payload, v); err != nil {
		fix := "check that the plugin is of the version that its types are of"
		return nil, Stalled("the payload of "+id+" cannot be read", err.Error(), fix)
	}
	return asset, nil
}

func (c *Call) asset(id string) (*pb.Asset, error) {
	for _, asset := range c.intent.GetAssets() {
		if asset.Id == id {
			return asset, nil
		}
	}
	if id == c.Target.Id { // Lehr always sends it along
		return &pb.Asset{Id: id}, nil
	}
	c.need.Assets = append(c.need.Assets, id)
	return nil, needError{}
}

// Output decodes an output of another asset into v. `path` is its name, and what leads to a value within it:
// "endpoint/port". While it is not known, the asset of this call waits for it.
func (c *Call) Output(id, path string, v any) error {
	for _, output := range c.intent.GetOutputs() {
		if output.Id == id && output.Path == path {
			return json.Unmarshal(output.Value, v)
		}
	}
	c.need.Outputs = append(c.need.Outputs, &pb.OutputKey{Id: id, Path: path})
	return needError{}
}

// Secret is the value of the secret that a payload refers to, as in "env:TOKEN". It must appear in nothing that the
// plugin returns, prints or logs, and neither may its digest, which could be guessed.
func (c *Call) Secret(reference string) ([]byte, error) {
	for _, secret := range c.intent.GetSecrets() {
		if secret.Reference == reference {
			return secret.Value, nil
		}
	}
	c.need.Secrets = append(c.need.Secrets, reference)
	return nil, needError{}
}

// Shared is what `look` returns for `key`, called once for all calls of a batch: where many assets live in one file or
// behind one listing, it is read once. `look` must only look, and nobody may change its value.
func Shared[T any](c *Call, key string, look func() (T, error)) (T, error) {
	value, err := c.shared.get(key, func() (any, error) { return look() })
	if err != nil {
		var none T
		return none, err
	}
	return value.(T), nil
}

type sharedValues struct {
	mutex  sync.Mutex
	values map[string]*sharedValue
}

type sharedValue struct {
	once  sync.Once
	value any
	err   error
}

func newSharedValues() *sharedValues { return &sharedValues{values: map[string]*sharedValue{}} }

func (s *sharedValues) get(key string, look func() (any, error)) (any, error) {
	s.mutex.Lock()
	entry, ok := s.values[key]
	if !ok {
		entry = &sharedValue{}
		s.values[key] = entry
	}
	s.mutex.Unlock()
	entry.once.Do(func() { entry.value, entry.err = look() })
	return entry.value, entry.err
}

// Change is one difference: what differs ("replicas/1/content"), how it should be and how it is. nil means absent.
// The values are short, and never secret.
func Change(path string, intended, observed any) *pb.Change {
	return &pb.Change{Path: path, Intended: encoded(intended), Observed: encoded(observed)}
}

// Outputs are the values that a diff has for other assets. Without any, production has none.
func Outputs(values map[string]any) *pb.Outputs {
	outputs := &pb.Outputs{Values: map[string][]byte{}}
	for name, value := range values {
		outputs.Values[name] = encoded(value)
	}
	return outputs
}

func encoded(value any) []byte {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // of a type that JSON does not have: a mistake in the plugin
	}
	return text
}

package lehrplugin

import (
	"encoding/json"
	"fmt"
	"io/fs"

	pb "lehr.dev/plugin/v1"
)

// Types reads declarations of types, as a workspace has them in its folder `types`. A file that is missing or is not a
// declaration is a mistake in the program, which does not start.
func Types(files fs.FS, names ...string) []*pb.AssetType {
	var types []*pb.AssetType
	for _, name := range names {
		var declared struct {
			Name, Description  string
			Version            uint32
			Schema, References json.RawMessage
			Secrets            []string
		}
		content, err := fs.ReadFile(files, name)
		if err == nil {
			err = json.Unmarshal(content, &declared)
		}
		if err != nil {
			panic(fmt.Sprintf("%s does not declare a type: %v", name, err))
		}
		types = append(types, &pb.AssetType{
			Name:        declared.Name,
			Version:     declared.Version,
			Description: declared.Description,
			Schema:      declared.Schema,
			References:  declared.References,
			Secrets:     declared.Secrets,
		})
	}
	return types
}

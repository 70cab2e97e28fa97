package main

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials returns the list of the Go modules in a binary, in CycloneDX format. It
// takes the modules from info, the build information in the binary.
func billOfMaterials(info *debug.BuildInfo, p platform, at time.Time) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	main := component(cyclonedx.ComponentTypeApplication, info.Main)
	main.Properties = &[]cyclonedx.Property{
		{Name: "go:version", Value: info.GoVersion}, {Name: "go:os", Value: p.os}, {Name: "go:arch", Value: p.arch},
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: &main}
	components := []cyclonedx.Component{
		component(cyclonedx.ComponentTypeLibrary, debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}),
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, *m))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom.Components = &components
	var b bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return b.Bytes(), err
}

func component(kind cyclonedx.ComponentType, m debug.Module) cyclonedx.Component {
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := cyclonedx.Component{BOMRef: url, Type: kind, Name: m.Path, Version: m.Version, PackageURL: url}
	if m.Sum != "" { // m.Sum is the hash of the module's files, as in go.sum
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// render_chart CHART VALUES... renders a Helm chart as `helm template` does, with the same libraries:
// Go's templates, Sprig and Kubernetes' YAML. There is no Helm to install by name; Debian has all parts.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func main() {
	if err := render(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart string, files []string) error {
	values := object{}
	for _, file := range append([]string{filepath.Join(chart, "values.yaml")}, files...) {
		given, err := read(file)
		if err != nil {
			return err
		}
		values = merge(values, given)
	}
	about, err := read(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	// Helm gives templates the fields of Chart.yaml with capitals.
	capitals := object{}
	for name, value := range about {
		capitals[strings.ToUpper(name[:1])+name[1:]] = value
	}
	root := object{
		"Values":  values,
		"Chart":   capitals,
		"Release": object{"Name": "shop", "Namespace": "shop", "Service": "Helm", "IsInstall": true},
	}
	templates, err := parse(chart)
	if err != nil {
		return err
	}
	for _, each := range templates.Templates() {
		name := each.Name()
		if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".txt") {
			continue
		}
		var text bytes.Buffer
		if err := each.Execute(&text, root); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text.String()) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name, text.String())
		}
	}
	return nil
}

func parse(chart string) (*template.Template, error) {
	templates := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := templates.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	templates.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if _, err := templates.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	return templates, nil
}

func read(file string) (object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := object{}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}

// merge puts the values of an installation over the chart's; null removes one.
func merge(below, above object) object {
	merged := object{}
	for name, value := range below {
		merged[name] = value
	}
	for name, value := range above {
		inner, isObject := value.(object)
		outer, wasObject := merged[name].(object)
		switch {
		case value == nil:
			delete(merged, name)
		case isObject && wasObject:
			merged[name] = merge(outer, inner)
		default:
			merged[name] = value
		}
	}
	return merged
}

// Reads what a real agent served, and Jackfield's rules and queries, with Prometheus' own parsers and
// linter, which are those of promtool, and evaluates each of them with its engine.
//
//	stdin:  {"scrapes": [{"type": Content-Type, "page": text}], "rules": YAML, "queries": {name: PromQL}};
//	        a scrape without a type is one that failed
//	stdout: {"problems": [line], "series": {name: how many the last scrape gives}}
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Between two scrapes, as far as the engine knows.
const interval = time.Minute

type input struct {
	Scrapes []struct{ Type, Page string }
	Rules   string
	Queries map[string]string
}

type output struct {
	Problems []string       `json:"problems"`
	Series   map[string]int `json:"series"`
}

// What Prometheus adds to each series of a target.
var target = map[string]string{"job": "jackfield", "instance": "10.0.0.1:9321"}

func main() {
	var in input
	out := output{Problems: []string{}, Series: map[string]int{}}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	database := database{}
	for number, scrape := range in.Scrapes {
		at := time.Unix(0, 0).Add(interval * time.Duration(number+1))
		if err := database.take([]byte(scrape.Page), scrape.Type, at); err != nil {
			out.problem("scrape %d: %v", number, err)
		}
		if strings.HasPrefix(scrape.Type, "text/plain") {
			out.lint(scrape.Page)
		}
	}
	language := parser.NewParser(parser.Options{})
	judge := judge{out: &out, database: database, language: language}
	judge.now = time.Unix(0, 0).Add(interval * time.Duration(len(in.Scrapes)))
	judge.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 20, Timeout: time.Minute, LookbackDelta: 5 * interval, Parser: language,
	})
	for name, query := range in.Queries {
		judge.query(name, query, "")
	}
	groups, problems := rulefmt.Parse([]byte(in.Rules), false, model.UTF8Validation, language, promslog.NewNopLogger())
	for _, problem := range problems {
		out.problem("rules: %v", problem)
	}
	if groups != nil {
		judge.rules(groups)
	}
	slices.Sort(out.Problems)
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		os.Exit(2)
	}
}

func (out *output) problem(format string, arguments ...any) {
	out.Problems = append(out.Problems, fmt.Sprintf(format, arguments...))
}

// What `promtool check metrics` says of names, units and help.
func (out *output) lint(page string) {
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		out.problem("lint: %v", err)
	}
	for _, problem := range problems {
		out.problem("lint: %s: %s", problem.Metric, problem.Text)
	}
}

// Series by their labels, as text.
type database map[string]*promql.Series

func (series database) add(of labels.Labels, at time.Time, value float64) {
	builder := labels.NewBuilder(of)
	for name, value := range target {
		builder.Set(name, value)
	}
	of = builder.Labels()
	if series[of.String()] == nil {
		series[of.String()] = &promql.Series{Metric: of}
	}
	floats := &series[of.String()].Floats
	*floats = append(*floats, promql.FPoint{T: at.UnixMilli(), F: value})
}

// Takes a page as Prometheus does when it scrapes, and notes whether it has.
func (series database) take(page []byte, contentType string, at time.Time) error {
	up := labels.FromStrings(labels.MetricName, "up")
	if contentType == "" {
		series.add(up, at, 0)
		return nil
	}
	entries, err := textparse.New(page, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		entries.Labels(&of)
		_, _, value := entries.Series()
		series.add(of, at, value)
	}
	series.add(up, at, 1)
	return nil
}

func (series database) matching(matchers ...*labels.Matcher) []*promql.Series {
	var found []*promql.Series
	for _, one := range series {
		matches := true
		for _, matcher := range matchers {
			matches = matches && matcher.Matches(one.Metric.Get(matcher.Name))
		}
		if matches {
			found = append(found, one)
		}
	}
	return found
}

func (series database) ofMetric(name string) []*promql.Series {
	return series.matching(labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, name))
}

func (series database) Querier(_, _ int64) (storage.Querier, error) {
	choose := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		return &found{left: series.matching(matchers...)}
	}
	return &storage.MockQuerier{SelectMockFunction: choose}, nil
}

// Series that were found, handed out one by one.
type found struct {
	left []*promql.Series
	at   storage.Series
}

func (found *found) Next() bool {
	if len(found.left) == 0 {
		return false
	}
	found.at = promql.NewStorageSeries(*found.left[0])
	found.left = found.left[1:]
	return true
}

func (found *found) At() storage.Series { return found.at }

func (*found) Err() error { return nil }

func (*found) Warnings() annotations.Annotations { return nil }

type judge struct {
	out      *output
	database database
	language parser.Parser
	engine   *promql.Engine
	now      time.Time
}

func (judge *judge) rules(groups *rulefmt.RuleGroups) {
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			texts := ""
			for _, text := range rule.Annotations {
				texts += text
			}
			judge.query(rule.Alert+rule.Record, rule.Expr, texts)
		}
	}
}

var ofLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// Judges an expression, and the labels that the texts about its result name.
func (judge *judge) query(name, text, texts string) {
	expression, err := judge.language.ParseExpr(text)
	if err != nil {
		judge.out.problem("%s: %v", name, err)
		return
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			if len(judge.database.ofMetric(node.Name)) == 0 {
				judge.out.problem("%s: no scrape has the metric %s", name, node.Name)
			}
			for _, matcher := range node.LabelMatchers {
				judge.haveLabel(name, node, matcher.Name)
			}
		case *parser.AggregateExpr:
			judge.haveLabel(name, node.Expr, node.Grouping...)
		case *parser.BinaryExpr:
			if matching := node.VectorMatching; matching != nil {
				judge.haveLabel(name, node.LHS, matching.MatchingLabels...)
				judge.haveLabel(name, node.RHS, matching.MatchingLabels...)
				judge.haveLabel(name, node, matching.Include...)
			}
		}
		return nil
	})
	for _, found := range ofLabel.FindAllStringSubmatch(texts, -1) {
		judge.haveLabel(name, expression, found[1])
	}
	query, err := judge.engine.NewInstantQuery(context.Background(), judge.database, nil, text, judge.now)
	if err != nil {
		judge.out.problem("%s: %v", name, err)
		return
	}
	defer query.Close()
	result := query.Exec(context.Background())
	for _, warning := range result.Warnings.AsErrors() {
		judge.out.problem("%s: %v", name, warning)
	}
	vector, err := result.Vector()
	if err != nil {
		judge.out.problem("%s: %v", name, err)
	}
	judge.out.Series[name] = len(vector)
}

// A label that no series has of those which an expression selects is a mistake.
func (judge *judge) haveLabel(name string, expression parser.Expr, names ...string) {
	var series []*promql.Series
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			series = append(series, judge.database.ofMetric(selector.Name)...)
		}
		return nil
	})
	for _, label := range names {
		if !slices.ContainsFunc(series, func(one *promql.Series) bool { return one.Metric.Has(label) }) {
			judge.out.problem("%s: nothing that %s selects has the label %s", name, expression, label)
		}
	}
}

package documents_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// root is the path of the module's folder. Each test calls t.Chdir(root), so that paths in its
// output are relative to the module. With os.Chdir in TestMain instead, Go's test cache would show
// old results after files have changed.
const root = "../.."

// content returns the content of the file at path.
func content(t *testing.T, path string) string {
	t.Helper()
	return string(lab.Must(os.ReadFile(path))(t))
}

// filesNamed returns the paths of the repository's files that end with suffix.
func filesNamed(t *testing.T, suffix string) (paths []string) {
	t.Helper()
	lab.OK(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

// documents returns the text of each Markdown page of the project, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "proof/interop/*.md", "internal/ambiguity/*.md", ".github/*.md"} {
		for _, path := range lab.Must(filepath.Glob(pattern))(t) {
			docs[path] = content(t, path)
		}
	}
	return docs
}

// found fails the test if a search has found fewer than "least" things. n is the number found, and
// "what" is their name in the error message. Without this check, a test whose search finds nothing
// would succeed.
func found(t *testing.T, n, least int, what string) {
	t.Helper()
	if n < least {
		t.Errorf("only %d %s were found", n, what)
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	testName     = regexp.MustCompile(`\b(?:Test|Example|Fuzz)[A-Z_]\w*`)
	namedLink    = regexp.MustCompile("\\[`((?:Test|Example)[A-Z_]\\w*)`\\]\\(([^)\\s]+)\\)")
	testFunc     = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)
)

// anchors returns the anchors of a page's headings, spelled as links spell them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := notInAnchors.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

func TestLinksInDocumentsHaveExistingTargets(t *testing.T) {
	t.Chdir(root)
	docs := documents(t)
	links := 0
	for path, text := range docs {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			} else if anchor != "" && !anchors(docs[filepath.ToSlash(target)])[anchor] {
				t.Errorf("%s links to %s: no such heading", path, m[1])
			}
		}
	}
	found(t, links, 1, "links")
}

func TestDocumentsLinkTestNameToFileThatContainsTest(t *testing.T) {
	t.Chdir(root)
	links := 0
	for path, text := range documents(t) {
		for _, m := range namedLink.FindAllStringSubmatch(text, -1) {
			links++
			b, err := os.ReadFile(filepath.Join(filepath.Dir(path), m[2]))
			if err != nil || !strings.Contains(string(b), "\nfunc "+m[1]+"(") {
				t.Errorf("%s links %s to %s, which does not contain it: %v", path, m[1], m[2], err)
			}
		}
	}
	found(t, links, 1, "links")
}

func TestEveryTestNamedInDocumentsExists(t *testing.T) {
	t.Chdir(root)
	exists := map[string]bool{}
	for _, path := range filesNamed(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(content(t, path), -1) {
			exists[m[1]] = true
		}
	}
	named := 0
	for path, text := range documents(t) {
		for _, name := range testName.FindAllString(text, -1) {
			named++
			if !exists[name] {
				t.Errorf("%s names %s: there is no such test", path, name)
			}
		}
	}
	found(t, named, 1, "tests")
}

func TestSecurityPageCitesTestForEveryClaim(t *testing.T) {
	t.Chdir(root)
	page := documents(t)[filepath.Join("docs", "security.md")]
	lines := 0
	for section := range strings.SplitSeq(page, "\n## ") {
		for line := range strings.Lines(section) {
			if !strings.HasPrefix(line, "| can") {
				continue
			}
			lines++
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if len(cells) != 3 || !testName.MatchString(cells[2]) || testName.MatchString(cells[1]) {
				t.Errorf("docs/security.md: a line does not consist of a claim and its test: %s", line)
			}
		}
		title, rows, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(title, "#") || strings.HasPrefix(title, "Policies") {
			continue
		}
		if !strings.Contains(rows, "\n| | | test |\n") || !strings.Contains(rows, "\n| can") {
			t.Errorf("docs/security.md: %s has no lines", title)
		}
		for line := range strings.Lines(rows) {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| can | ") && !strings.HasPrefix(line, "| cannot | ") && line != "| | | test |\n" {
				t.Errorf("docs/security.md: %s: a line begins with neither can nor cannot: %s", title, line)
			}
		}
	}
	found(t, lines, 1, "lines")
}

// packageDocs returns the doc comment and the name of each package in the repository. The
// keys of both maps are the packages' folders.
func packageDocs(t *testing.T) (docs, names map[string]string) {
	t.Helper()
	docs, names = map[string]string{}, map[string]string{}
	for _, path := range filesNamed(t, ".go") {
		file := lab.Must(parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments))(t)
		dir := filepath.ToSlash(filepath.Dir(path))
		docs[dir] += file.Doc.Text()
		if !strings.HasSuffix(file.Name.Name, "_test") || names[dir] == "" {
			names[dir] = file.Name.Name
		}
	}
	return docs, names
}

func TestPackagesHaveDocComments(t *testing.T) {
	t.Chdir(root)
	docs, names := packageDocs(t)
	for dir, name := range names {
		begin := "Package " + name + " "
		if name == "main" {
			begin = filepath.Base(dir) + " "
		}
		text := strings.TrimPrefix(docs[dir], "Command ")
		if !strings.HasPrefix(strings.ToLower(text), strings.ToLower(begin)) || len(strings.Fields(text)) < 6 {
			t.Errorf("%s needs a doc comment that describes the package, but has %q", dir, text)
		}
	}
	found(t, len(names), 50, "packages")
}

func TestFilesNamedInContributingGuideExist(t *testing.T) {
	t.Chdir(root)
	files := between(t, content(t, "CONTRIBUTING.md"), "\n## Where is what\n", "\n## ")
	named := regexp.MustCompile("`([\\w/]+\\.(?:go|txt))`").FindAllStringSubmatch(files, -1)
	for _, m := range named {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v", m[1], err)
		}
	}
	found(t, len(named), 40, "files")
}

func TestMigrationPagesLinkToEveryInteropTest(t *testing.T) {
	t.Chdir(root)
	linked := map[string]bool{}
	for path, text := range documents(t) {
		for _, m := range namedLink.FindAllStringSubmatch(text, -1) {
			linked[m[1]] = linked[m[1]] || strings.HasPrefix(filepath.ToSlash(path), "docs/migrating/")
		}
	}
	scenarios := 0
	for _, path := range lab.Must(filepath.Glob("proof/interop/sharing/*_test.go"))(t) {
		for _, m := range testFunc.FindAllStringSubmatch(content(t, path), -1) {
			if m[1] == "TestMain" {
				continue
			}
			scenarios++
			if !linked[m[1]] {
				t.Errorf("%s: no page of docs/migrating links to %s", path, m[1])
			}
		}
	}
	found(t, scenarios, 1, "scenarios")
}

package ui

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUIForgetsDeletedKeysInOrderOfTheirDeletion(t *testing.T) {
	proto := lab.Must(records.Of(layout.Native{}))(t)
	b := newBoard(proto, liveness.Rule{})
	var now time.Duration
	look := func() liveness.Reading {
		now += time.Second
		return at(now)
	}
	see := func(key string) {
		b.see(protocol.Item{"key": &types.AttributeValueMemberS{Value: key}}, look())
	}
	seeNone := func(key string) { b.seeNone(protocol.Key{Partition: key}, look()) }
	see("other")
	seeNone("other")
	for range mostGone + 1 {
		see("job")
		seeNone("job")
	}
	see("job")
	see("other")
	lab.Want(t, "time of the last forgotten key", b.forgotten, (time.Time{}))
	for i := range mostGone + 1 {
		key := fmt.Sprint("once/", i)
		see(key)
		seeNone(key)
	}
	see("once/0")
	if e := b.entries[protocol.Key{Partition: "once/0"}]; !e.history.Since.Equal(b.forgotten) || b.forgotten.IsZero() {
		t.Errorf("a key that was forgotten at %v is known since %v", b.forgotten, e.history.Since)
	}
	for i, key := range []string{"other", "job"} {
		e := b.entries[protocol.Key{Partition: key}]
		if e == nil || e.id != i+1 {
			t.Errorf("%s is %+v: its history is lost", key, e)
		}
	}
}

func TestUIRateOfReadUnitsIsAverageOfLastTenSeconds(t *testing.T) {
	p := pace{rate: 100}
	now := start
	for range 1000 {
		now = now.Add(time.Second)
		p.spend(2, now)
	}
	lab.WantRange(t, "stored requests", len(p.spent), 0, 20)
	lab.WantRange(t, "read units a second", p.perSecond(now, start), 2, 2.5)
	lab.Want(t, "read units a second, a minute after the last", p.perSecond(now.Add(time.Minute), start), 0)
}

// The page must not refer to other servers, so that a browser loads only the page's own files. The
// documented size is the sum of the sizes of these files.
func TestUIPageIsSelfContainedAndHasDocumentedSize(t *testing.T) {
	total := 0
	elsewhere := regexp.MustCompile(`(?i)(src|href|url|import|from)\s*[=(]?\s*["']?https?://`)
	inline := regexp.MustCompile(`(?i)<script>|<style|\sstyle=|\son[a-z]+=|innerHTML\s*=|insertAdjacentHTML|eval\(`)
	lab.OK(t, fs.WalkDir(files, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(path)
		total += len(b)
		lab.Want(t, path+": a reference to another server", string(elsewhere.Find(b)), "")
		lab.Want(t, path+": code that the policy forbids", string(inline.Find(b)), "")
		return err
	}))
	doc := lab.Must(os.ReadFile("../../docs/ui.md"))(t)
	lab.WantParts(t, "docs/ui.md", doc, fmt.Sprintf("%d kB", (total+999)/1000))
}

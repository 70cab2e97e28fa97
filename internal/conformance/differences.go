package conformance

// Difference is what an engine does where AWS does something else.
type Difference struct {
	Why string

	// Either the words of the error, which is otherwise AWS's,
	words string
	// or the whole reply, and what it leaves behind if the case looks at that.
	want Reply
	then []Item
}

// differences are the known ones of an engine, by subject/case.
func differences(engine string) map[string]*Difference {
	switch engine {
	case "dynoxide":
		return dynoxide()
	case "DynamoDB Local":
		return dynamoDBLocal()
	}
	return nil
}

// of is what a case wants of an engine with the difference.
func (d *Difference) of(c Case) (Reply, []Item) {
	if d.words != "" {
		fault := *c.Want.Err
		fault.Text = d.words
		return Reply{Err: &fault}, c.Then
	}
	if d.then != nil {
		return d.want, d.then
	}
	return d.want, c.Then
}

// worded are differences of nothing but an error's text.
func worded(why string, texts map[string]string) map[string]*Difference {
	all := map[string]*Difference{}
	for name, text := range texts {
		all[name] = &Difference{Why: why, words: text}
	}
	return all
}

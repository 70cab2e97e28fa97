package conformance

// Difference is a case in which an engine does not behave as AWS does.
type Difference struct {
	Why string

	// words is the engine's error text, if the reply differs only in that text.
	words string
	// want is the engine's whole reply otherwise. then is the table's content on that
	// engine; nil if it is the same as on AWS.
	want Reply
	then []Item
}

// differences returns the known differences of an engine. The map's keys have the form
// subject/case.
func differences(engine string) map[string]*Difference {
	switch engine {
	case "dynoxide":
		return dynoxide()
	case "DynamoDB Local":
		return dynamoDBLocal()
	}
	return nil
}

// of returns the reply and the table's content that this engine must show for the case,
// instead of those in the case.
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

// worded returns differences that concern only the texts of errors. The parameter why is
// the common reason for them.
func worded(why string, texts map[string]string) map[string]*Difference {
	all := map[string]*Difference{}
	for name, text := range texts {
		all[name] = &Difference{Why: why, words: text}
	}
	return all
}

package conformance

// Difference describes a case in which an engine does not behave as AWS does.
type Difference struct {
	Why string // why the engine's reply is believed to be wrong

	// The engine's error text, if the engine's reply differs from the reply of AWS only in that
	// text.
	words string
	// The engine's whole reply. It is used if words is "".
	want Reply
	// The table's items on the engine after the request; nil if these items are the same as on AWS.
	then []Item
}

// differences returns the known differences between an engine and AWS. The map's keys have the
// form subject/case.
func differences(engine string) map[string]*Difference {
	switch engine {
	case "dynoxide":
		return dynoxide()
	case "DynamoDB Local":
		return dynamoDBLocal()
	}
	return nil
}

// The method "of" returns the reply and the table content that the tests expect from an engine with
// the difference d in case c.
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

// worded returns one Difference for each of the given error texts. The map's keys have the form
// subject/case. The parameter "why" is the reason that all the differences share.
func worded(why string, texts map[string]string) map[string]*Difference {
	all := map[string]*Difference{}
	for name, text := range texts {
		all[name] = &Difference{Why: why, words: text}
	}
	return all
}

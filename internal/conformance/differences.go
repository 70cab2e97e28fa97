package conformance

// Difference describes a case in which an engine does not behave as AWS does.
type Difference struct {
	Why string // why the engine's reply is believed to be wrong

	// words is the engine's error text. It is set if the engine's reply differs from AWS's only
	// in that text.
	words string
	// want is the engine's whole reply. It is used if words is "". then is the table's content
	// on the engine after the request; nil if the content is the same as on AWS.
	want Reply
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

// of returns the reply and the table content that the tests expect of this engine for the case.
// They replace the reply and the content that AWS documents.
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

// worded returns one Difference for each error text in texts. The map's keys have the form
// subject/case. why is the reason that all the differences share.
func worded(why string, texts map[string]string) map[string]*Difference {
	all := map[string]*Difference{}
	for name, text := range texts {
		all[name] = &Difference{Why: why, words: text}
	}
	return all
}

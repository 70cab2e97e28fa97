package localdynamo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

const (
	maxToken  = 36               // maximum length of a ClientRequestToken, in bytes
	tokenLife = 10 * time.Minute // how long the engine remembers a token
)

// checkToken returns an error if the request has a token that is empty or too long. A client relies
// on its token to retry safely. If an empty token counted as missing, each retry would execute the
// writes again.
func checkToken(token option[string]) error {
	switch {
	case token.given && token.value == "":
		return invalid("1 validation error detected: Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case len(token.value) > maxToken:
		return invalidf("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to %d", token.value, maxToken)
	}
	return nil
}

// fingerprint returns the same bytes for two requests with the same writes. The order of an item's
// attributes does not change the bytes. The order of the placeholders does change them, because
// DynamoDB also treats requests with different orders of placeholders as different.
func fingerprint(req *request) []byte {
	sum := sha256.New()
	for i := range req.actions {
		a := &req.actions[i]
		b := []byte(a.kinds[0])
		for _, s := range []string{a.request.table, a.request.condition.value, a.request.update.value, a.request.returnsOld} {
			b = appendText(append(b, 0), s)
		}
		b = appendItem(append(b, 0), a.request.key.value)
		b = appendItem(b, a.request.item.value)
		for _, name := range a.request.names.value {
			b = appendText(appendText(b, name.placeholder), name.name)
		}
		for _, v := range a.request.values.value {
			b = appendValue(appendText(b, v.placeholder), v.value)
		}
		_, _ = sum.Write(b)
	}
	return sum.Sum(nil)
}

// remember reports whether the request was executed with the same token within the last ten
// minutes. It returns an error if the token was used for a different request in that time. If the
// token is new, it records the token and the request's fingerprint (print). Without a token it
// returns false.
func remember(tx Tx, token string, print []byte, now time.Time) (repeated bool, err error) {
	if token == "" {
		return false, nil
	}
	if err := forget(tx, now); err != nil {
		return false, err
	}
	key := append([]byte{prefixToken}, token...)
	if known := tx.Get(key); known != nil {
		if !bytes.Equal(known, print) {
			return false, newError(typeMismatch, "The provided client token is already used with other request parameters: use a new ClientRequestToken for a new request")
		}
		return true, nil
	}
	if err := tx.Put(key, print); err != nil {
		return false, err
	}
	due := binary.BigEndian.AppendUint64([]byte{prefixForget}, uint64(now.Add(tokenLife).UnixNano()))
	return false, tx.Put(append(due, token...), []byte{1})
}

// forget deletes the tokens that are older than tokenLife.
func forget(tx Tx, now time.Time) error {
	var due [][]byte
	end := binary.BigEndian.AppendUint64([]byte{prefixForget}, uint64(now.UnixNano())+1)
	for key := range tx.Range([]byte{prefixForget}, end) {
		due = append(due, bytes.Clone(key))
	}
	for _, key := range due {
		if err := tx.Delete(key); err != nil {
			return err
		}
		if err := tx.Delete(append([]byte{prefixToken}, key[9:]...)); err != nil {
			return err
		}
	}
	return nil
}

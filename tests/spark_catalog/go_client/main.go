// A client of Spark Connect in Go that knows nothing of Frazil: runs statements, prints rows.
//
// Each argument after the address is a statement; one that begins with "table:" reads a table by its
// name, one that begins with "2:" is of another session, and "wait" waits to be killed. Each answer is
// a line of JSON: the rows, or an object with the text of an error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/spark-connect-go/spark/sql"
)

func main() {
	ctx := context.Background()
	first, second := begun(ctx), begun(ctx)
	defer first.Stop()
	defer second.Stop()
	for _, step := range os.Args[2:] {
		if step == "wait" {
			time.Sleep(time.Hour)
		}
		session := first
		text, isOther := strings.CutPrefix(step, "2:")
		if isOther {
			session = second
		}
		rows, err := answer(ctx, session, text)
		var said any = rows
		if err != nil {
			said = map[string]string{"error": err.Error()}
		}
		line, err := json.Marshal(said)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}

func begun(ctx context.Context) sql.SparkSession {
	session, err := sql.NewSessionBuilder().Remote(os.Args[1]).Build(ctx)
	if err != nil {
		panic(err)
	}
	return session
}

func answer(ctx context.Context, session sql.SparkSession, step string) ([][]any, error) {
	rows := [][]any{}
	var found sql.DataFrame
	var err error
	if name, ok := strings.CutPrefix(step, "table:"); ok {
		found, err = session.Read().Table(name)
	} else {
		found, err = session.Sql(ctx, step)
	}
	if err != nil {
		return nil, err
	}
	collected, err := found.Collect(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range collected {
		rows = append(rows, row.Values())
	}
	return rows, nil
}

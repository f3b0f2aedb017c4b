# user only: it takes long, and nothing in it asks who runs it
# needs: go
cat > go.mod <<'G'
module example.com/app
go 1.19
G
mkdir part
printf 'package part\n\nfunc Twice(x int) int { return x * 2 }\n' > part/part.go
printf 'package part\n\nimport "testing"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Fatal()\n\t}\n}\n' > part/part_test.go
cat > main.go <<'G'
package main

import (
	"fmt"
	"os/exec"

	"example.com/app/part"
)

func main() {
	twice := make(chan int)
	go func() { twice <- part.Twice(21) }()
	out, err := exec.Command("echo", fmt.Sprint(<-twice)).Output()
	fmt.Print(string(out), err, "\n")
}
G
go vet ./... && go test ./... | sed 's/\t[0-9.]*s$//;s/\t(cached)//' && go build -o app . && ./app && gofmt -l .

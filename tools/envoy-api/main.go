// Command envoy-api writes the descriptors of every Envoy API file that is linked into it as one
// FileDescriptorSet, gzipped, dependencies first. The same Go modules give the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: envoy-api FILE.binpb.gz")
	}
	set := descriptorSet()
	plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		log.Fatalf("encode the descriptor set: %v", err)
	}
	packed, err := pack(plain)
	if err != nil {
		log.Fatalf("compress the descriptor set: %v", err)
	}
	if err := os.WriteFile(os.Args[1], packed, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d files, %d bytes, %d packed\n", len(set.File), len(plain), len(packed))
}

// descriptorSet collects all linked files, sorted by path, each after the files that it imports.
func descriptorSet() *descriptorpb.FileDescriptorSet {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		files = append(files, file)
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int {
		return strings.Compare(a.Path(), b.Path())
	})
	set, seen := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			path := file.Imports().Get(i).Path()
			imported, err := protoregistry.GlobalFiles.FindFileByPath(path)
			if err != nil {
				log.Fatalf("%s imports %s, which no linked package holds: %v", file.Path(), path, err)
			}
			add(imported)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	for _, file := range files {
		add(file)
	}
	return set
}

// pack leaves the gzip header without time and name, so that the bytes depend on the content alone.
func pack(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(plain); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"
)

// pack returns an archive with a single directory, named dir, that contains the files, sorted by
// name. The archive is a zip for Windows, and a tar.gz for other platforms. All files get the
// modification time "at", so that a second build is identical.
func pack(dir string, files []file, p platform, at time.Time) (file, error) {
	files = slices.SortedFunc(slices.Values(files), byName)
	for i := range files {
		files[i].name = path.Join(dir, files[i].name)
	}
	var content []byte
	var err error
	name := dir + ".tar.gz"
	if p.os == "windows" {
		name = dir + ".zip"
		content, err = zipped(files, at)
	} else {
		content, err = tarred(files, at)
	}
	return file{name: name, content: content}, err
}

func (f file) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

func tarred(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		// The format is USTAR, because headers in the PAX or GNU format could contain
		// properties of the build machine.
		h := &tar.Header{Name: f.name, Mode: int64(f.mode()), Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), z.Close())
	return b.Bytes(), err
}

func zipped(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode())
		in, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := in.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

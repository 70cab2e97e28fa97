package store

import (
	"io/fs"
	"os"
)

func giveGroup(*os.File, fs.FileInfo) {}

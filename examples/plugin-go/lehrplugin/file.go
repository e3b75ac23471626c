package lehrplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file in one step: readers see the old content or the new one, and never a part, also after a
// power failure. The folder must exist.
func ReplaceFile(path string, content []byte, mode fs.FileMode) error {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := writeFile(aside, content, mode); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		os.Remove(aside)
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes what was renamed or removed in a folder outlive a power failure.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func writeFile(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Chmod(mode); err != nil { // it may be there, left by a process that was killed
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

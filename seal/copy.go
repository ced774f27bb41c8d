package seal

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// chunk is how much is hashed while it is being written.
const chunk = 256 << 10

// copiers is how many files are copied at once; each needs a buffer.
const copiers = 4

// cloneSize is from where on blocks are shared instead of copied (FICLONE on
// btrfs, XFS and others). It saves space, but the kernel first writes the original
// to the disk and reads the clone from there, which takes many times longer than
// copying a file that a compiler has just left in memory.
const cloneSize = 64 << 20

// buffers hands them out.
type buffers chan []byte

func newBuffers() buffers {
	b := make(buffers, copiers)
	for range copiers {
		b <- nil
	}
	return b
}

func (b buffers) get() []byte {
	buf := <-b
	if buf == nil {
		buf = make([]byte, chunk)
	}
	return buf
}

func (b buffers) put(buf []byte) { b <- buf }

// copyOut makes name below root a copy of the subject, without write permission
// for anybody, and returns the digest of the copy. On an error nothing is left.
func copyOut(root *os.Root, name string, s *subject, buf []byte) (d Digest, err error) {
	// A process that another goroutine forks would hold the copy open for writing
	// until it executes something, and make executing the copy fail with ETXTBSY.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return d, err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			root.Remove(name)
		}
	}()
	h := sha256.New()
	if s.id.size >= cloneSize && unix.IoctlFileClone(int(out.Fd()), int(s.f.Fd())) == nil {
		err = hashAll(h, out, s.id.size, buf)
	} else {
		err = copyAndHash(h, out, s, buf)
	}
	if err != nil {
		return d, err
	}
	h.Sum(d[:0])
	return d, out.Chmod(0o500) // not the umask's business
}

// hashAll reads exactly size bytes.
func hashAll(h hash.Hash, f io.ReaderAt, size int64, buf []byte) error {
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(f, 0, size+1), buf)
	if err == nil && n != size {
		err = &Refusal{Reason: Changing}
	}
	return err
}

// copyAndHash hashes what was written while the next bytes are read and written:
// the digest is of the copy, whatever happens to the original, and the whole costs
// what hashing does.
func copyAndHash(h hash.Hash, out io.Writer, s *subject, buf []byte) error {
	half := len(buf) / 2
	free, written, result := make(chan []byte, 2), make(chan []byte, 2), make(chan error, 1)
	free <- buf[:half:half]
	free <- buf[half : 2*half : 2*half]
	go func() {
		defer close(written)
		result <- copyChunks(out, s, free, written)
	}()
	for b := range written {
		h.Write(b)
		free <- b[:half]
	}
	return <-result
}

func copyChunks(out io.Writer, s *subject, free <-chan []byte, written chan<- []byte) error {
	for at := int64(0); ; {
		buf := <-free
		n, err := s.f.ReadAt(buf, at)
		if err != nil && err != io.EOF {
			return &Refusal{Unreadable, err}
		}
		if at += int64(n); at > s.id.size || n == 0 && at < s.id.size {
			return &Refusal{Reason: Changing}
		}
		if n == 0 {
			return nil
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return err
		}
		written <- buf[:n]
	}
}

// same compares two files byte by byte.
func same(x, y io.Reader, buf []byte) (bool, error) {
	half := len(buf) / 2
	for {
		n, err := io.ReadFull(x, buf[:half])
		m, err2 := io.ReadFull(y, buf[half:half+half])
		if n != m || string(buf[:n]) != string(buf[half:half+m]) {
			return false, nil
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return true, nil
		}
		if err = errors.Join(err, err2); err != nil {
			return false, err
		}
	}
}

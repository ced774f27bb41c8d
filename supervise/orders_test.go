package supervise

import (
	"os"
	"testing"
)

// Of thousands of processes that live each is looked at now and then, not whenever
// one more is started.
func TestCrowd(t *testing.T) {
	s := &server{orders: map[sent]*order{}, given: map[int]*order{}}
	s.given[1<<30] = &order{life: 1}
	for fd := range 3 * maxOrders {
		if err := s.expect(task(os.Getpid()), fd, &order{}); err != nil {
			t.Fatal(err)
		}
		if fd == maxOrders && (len(s.given) != 0 || len(s.orders) != maxOrders+1) {
			t.Fatalf("%d and %d are left", len(s.orders), len(s.given))
		}
	}
	// Twice: at 4096, and at 8190 or more.
	if len(s.orders) != 3*maxOrders || s.crowd < 3*maxOrders || s.crowd > 5*maxOrders {
		t.Errorf("%d orders, the next tidy at %d", len(s.orders), s.crowd)
	}
}

package main

import "testing"

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.75: 4, 1: 5} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
}

func TestRatioIsPaired(t *testing.T) {
	// The machine was slow in the second round: for both, so the ratio stays.
	if got := summarise("x", []float64{2, 20, 4}, []float64{1, 10, 2}).Ratio; got != 2 {
		t.Errorf("ratio = %v, want 2", got)
	}
}

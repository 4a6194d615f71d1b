package place

import "errors"

// ErrSleeps is why idle processors can't be kept from going to sleep.
var ErrSleeps = errors.New("this system does not let idle processors be kept awake")

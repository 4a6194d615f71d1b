package opserver

import "golang.org/x/sys/windows"

// refused is what dialling a socket that nobody listens on gives.
const refused = windows.WSAECONNREFUSED

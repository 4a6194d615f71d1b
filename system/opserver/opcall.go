package opserver

import (
	"context"
	"errors"

	"toll/wire/opcall"
	"toll/wire/zap"
)

// callBinary answers an op-call: the status and the body, appended to dst. name is the operation; errors become a body of
// their own.
func callBinary(ctx context.Context, ops Registry, errs *zap.Codec[opcall.Error], name string, input, dst []byte) (status int, body []byte) {
	op := ops.Lookup(name)
	if op == nil {
		return binaryError(errs, dst, &Error{NotFound, "no such operation"})
	}
	body, err := op.CallBinary(ctx, input, dst)
	if err != nil {
		return binaryError(errs, dst, err)
	}
	return 200, body
}

func binaryError(errs *zap.Codec[opcall.Error], dst []byte, err error) (status int, body []byte) {
	e := visible(err)
	status = statusFor(e)
	return status, errs.Append(dst, &opcall.Error{Status: int32(status), Code: e.Code, Message: e.Message})
}

// visible is what a caller may see of an error: one that is not ours keeps its text to itself.
func visible(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Internal, "the operation failed"}
}

// newErrorCodec can't fail: the type is our own.
func newErrorCodec() *zap.Codec[opcall.Error] {
	c, err := zap.NewCodec[opcall.Error]()
	if err != nil {
		panic("the op-call error's own type: " + err.Error())
	}
	return c
}

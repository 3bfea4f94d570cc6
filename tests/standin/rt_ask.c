// SPDX-License-Identifier: GPL-2.0-only
/* rt_ask.c: queries of the stand-in libcudart: events, captures, errors, host memory. See rt.c. */
#include "rt.h"

#define API_RESULT cudaError_t

API(cudaGetLastError, (void), ())
{
	int err = model_last_error();

	model_set_last_error(0);
	return err;
}

API(cudaPeekAtLastError, (void), ())
{
	return model_last_error();
}

API(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), (event, flags))
{
	void *made = NULL;
	int err;

	ENTER("cudaEventCreateWithFlags");
	(void)flags;
	err = event ? model_event_new(&made) : E_VALUE;
	if (!err)
		*event = made;
	return err;
}

API(cudaEventQuery, (cudaEvent_t event), (event))
{
	ENTER("cudaEventQuery");
	if (!event)
		return E_VALUE;
	if (model_event_done(event))
		return 0;
	model_set_last_error(E_NOT_READY);
	return E_NOT_READY;
}

API(cudaMemGetInfo, (size_t * left, size_t *total), (left, total))
{
	ENTER("cudaMemGetInfo");
	if (!left || !total)
		return E_VALUE;
	*left = *total = STANDIN_DEVICE_BYTES;
	return 0;
}

API(cudaEventSynchronize, (cudaEvent_t event), (event))
{
	ENTER("cudaEventSynchronize");
	if (!event)
		return E_VALUE;
	model_wait();
	return 0;
}

API_PTSZ(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status), (stream, status))
{
	ENTER("cudaStreamIsCapturing");
	*status = model_is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
	return 0;
}

API(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (mode))
{
	static __thread enum cudaStreamCaptureMode mine;
	enum cudaStreamCaptureMode before = mine;

	mine = *mode;
	*mode = before;
	return 0;
}

API(cudaHostGetFlags, (unsigned int *flags, void *p), (flags, p))
{
	ENTER("cudaHostGetFlags");
	if (!flags || !model_is_host(p))
		return E_VALUE;
	*flags = 0;
	return 0;
}

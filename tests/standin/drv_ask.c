// SPDX-License-Identifier: GPL-2.0-only
/* drv_ask.c: queries of the stand-in libcuda: events, captures, host memory. See drv.c. */
#include <stdlib.h>

#include "cu_api.h"
#include "api.h"

#define API_RESULT CUresult

API(cuCtxSynchronize, (void), ())
{
	ENTER("cuCtxSynchronize");
	model_wait();
	return 0;
}

API(cuCtxSynchronize_v2, (CUcontext ctx), (ctx))
{
	ENTER("cuCtxSynchronize_v2");
	(void)ctx;
	model_wait();
	return 0;
}

API_PTSZ(cuStreamSynchronize, (CUstream stream), (stream))
{
	ENTER("cuStreamSynchronize");
	(void)stream;
	model_wait();
	return 0;
}

API(cuMemGetInfo_v2, (size_t * left, size_t *total), (left, total))
{
	ENTER("cuMemGetInfo_v2");
	if (!left || !total)
		return E_VALUE;
	*left = *total = STANDIN_DEVICE_BYTES;
	return 0;
}

API(cuEventCreate, (CUevent * event, unsigned int flags), (event, flags))
{
	void *made = NULL;
	int err;

	ENTER("cuEventCreate");
	(void)flags;
	err = event ? model_event_new(&made) : E_VALUE;
	if (!err)
		*event = made;
	return err;
}

API(cuEventDestroy_v2, (CUevent event), (event))
{
	ENTER("cuEventDestroy_v2");
	free(event);
	return 0;
}

API(cuEventQuery, (CUevent event), (event))
{
	ENTER("cuEventQuery");
	if (!event)
		return E_VALUE;
	return model_event_done(event) ? 0 : E_NOT_READY;
}

API(cuEventSynchronize, (CUevent event), (event))
{
	ENTER("cuEventSynchronize");
	if (!event)
		return E_VALUE;
	model_wait();
	return 0;
}

API_PTSZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), (stream, status))
{
	ENTER("cuStreamIsCapturing");
	*status = model_is_capturing(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return 0;
}

API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
{
	static __thread CUstreamCaptureMode mine;
	CUstreamCaptureMode before = mine;

	mine = *mode;
	*mode = before;
	return 0;
}

API(cuMemHostGetFlags, (unsigned int *flags, void *p), (flags, p))
{
	ENTER("cuMemHostGetFlags");
	if (!flags || !model_is_host(p))
		return E_VALUE;
	*flags = 0;
	return 0;
}

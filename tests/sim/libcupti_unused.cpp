// Functions of CUPTI that the recorder has no use for, but that libraries of the programs under test are linked against.
#include <cupti.h>

extern "C" {

CUptiResult CUPTIAPI cuptiFinalize() { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t*, void*) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId, uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t*) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}
}

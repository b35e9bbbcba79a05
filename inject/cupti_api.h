// CUPTI, found at run time: never linked, so that its absence costs a line of warning and no program.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lamina {

class Cupti {
 public:
  // Opens the copy that is mapped already, else that of the process's Python environment, else the toolkit's.
  // Returns false when there is none; `problem()` then says what was tried.
  bool open();

  // Subscribes, registers the buffer callbacks and enables the callbacks of launches and graphs; no activity yet.
  bool subscribe(CUpti_CallbackFunc callback, CUpti_BuffersCallbackRequestFunc requested,
                 CUpti_BuffersCallbackCompleteFunc completed);

  void enable_activity();
  void disable_activity();

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  const std::string& problem() const { return problem_; }

  // Functions used outside of this class. Those marked optional are null in an old CUPTI.
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiGetGraphNodeId) graph_node_id = nullptr;
  decltype(&cuptiGetGraphId) graph_id = nullptr;
  decltype(&cuptiGetGraphExecId) graph_exec_id = nullptr;  // optional

  // enable_callback(subscriber, ...) of one callback; false when this CUPTI does not know it.
  bool enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id);

 private:
  bool load(const std::string& path, int flags);
  bool resolve();
  std::string error_text(CUptiResult result) const;

  void* library_ = nullptr;
  std::string path_;
  std::string problem_;
  uint32_t version_ = 0;
  CUpti_SubscriberHandle subscriber_ = nullptr;

  decltype(&cuptiGetVersion) get_version_ = nullptr;
  decltype(&cuptiSubscribe) subscribe_ = nullptr;
  decltype(&cuptiEnableCallback) enable_callback_ = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks_ = nullptr;
  decltype(&cuptiActivityEnable) activity_enable_ = nullptr;
  decltype(&cuptiActivityDisable) activity_disable_ = nullptr;
  decltype(&cuptiGetResultString) result_string_ = nullptr;
};

}  // namespace lamina

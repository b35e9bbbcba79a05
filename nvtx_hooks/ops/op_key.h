// The key of one op with its inputs.
#pragma once

#include <ATen/core/ivalue.h>

#include "nvtx_hooks/text/call_key.h"

namespace lamina {

class OpKey : public CallKey {
 public:
  OpKey(const char* name, c10::ArrayRef<const c10::IValue> inputs) {
    set_name(name);
    for (const c10::IValue& input : inputs) add(input, 0);
    set_hash();
  }

 private:
  void add(const c10::IValue& value, int depth);
  void add(const c10::TensorImpl* tensor);
  void add_rare(const c10::IValue& value, int depth);
  void add_entries(c10::ArrayRef<c10::IValue> entries, TokenKind open, TokenKind close, int depth);
};

}  // namespace lamina

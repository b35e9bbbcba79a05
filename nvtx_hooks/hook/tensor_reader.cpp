#include "nvtx_hooks/hook/tensor_reader.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "nvtx_hooks/text/call_text.h"

namespace lamina {
namespace {

constexpr size_t kMaxRank = 64;

// The dtypes seen so far: their objects live as long as PyTorch.
struct Dtypes {
  std::vector<PyObject*> objects;
  std::vector<std::string> names;
};
Dtypes& dtypes() {
  static auto& all = *new Dtypes;
  return all;
}

std::string name_of(PyObject* dtype) {
  Ref text(PyObject_Str(dtype));
  const char* name = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  if (!name) PyErr_Clear();
  std::string_view shown = name ? name : "?";
  if (shown.starts_with("torch.")) shown.remove_prefix(6);
  return std::string(shown);
}

uint8_t index_of(PyObject* dtype) {
  auto& [objects, names] = dtypes();
  auto found = std::find(objects.begin(), objects.end(), dtype);
  if (found == objects.end()) {
    names.push_back(name_of(dtype));
    found = objects.insert(found, Ref::borrowed(dtype).release());
  }
  return static_cast<uint8_t>(found - objects.begin());
}

template <typename Function>
void look_up(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
}

}  // namespace

std::string detail_name(Token tensor) { return dtypes().names[tensor.detail]; }

bool TensorReader::Getter::find(PyObject* type, const char* name) {
  descriptor_ = PyObject_GetAttrString(type, name);
  if (!descriptor_) PyErr_Clear();
  if (!descriptor_ || Py_TYPE(descriptor_) != &PyGetSetDescr_Type) return false;
  get_ = reinterpret_cast<descrgetfunc>(PyType_GetSlot(&PyGetSetDescr_Type, Py_tp_descr_get));
  return get_ != nullptr;
}

Ref TensorReader::Getter::get(PyObject* object) const {
  Ref value(get_(descriptor_, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  if (!value) PyErr_Clear();
  return value;
}

void TensorReader::start(PyObject* tensor_class, PyObject* parameter_class, const char* library) {
  void* torch = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (!torch || !sizes_.find(tensor_class, "shape") || !dtype_.find(tensor_class, "dtype")) return;
  look_up(torch, "_ZN5torch3jit6tracer15getTracingStateEv", tracing_state_);
  look_up(torch, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", modes_);
  look_up(torch, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", disabled_);
  look_up(torch, "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE", set_disabled_);
  if (!tracing_state_ || !modes_) return;
  if (PyObject* extension = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._C")) {
    get_tracing_state_ = PyObject_GetAttrString(extension, "_get_tracing_state");
    set_tracing_state_ = PyObject_GetAttrString(extension, "_set_tracing_state");
    PyErr_Clear();
  }
  tensor_type_ = reinterpret_cast<PyTypeObject*>(Ref::borrowed(tensor_class).release());
  parameter_type_ = reinterpret_cast<PyTypeObject*>(Ref::borrowed(parameter_class).release());
}

// A mode of the program would be told of each property that is read.
class TensorReader::ModesAside {
 public:
  // `always`: a class derived from Tensor would be told too.
  explicit ModesAside(const TensorReader& reader, bool always = false) : reader_(reader), are_there_(always || reader.modes_() > 0) {
    if (!are_there_ || !can_be_set_aside()) return;
    before_ = reader_.disabled_();
    reader_.set_disabled_(kAll);
  }
  ~ModesAside() {
    if (are_there_ && can_be_set_aside()) reader_.set_disabled_(before_);
  }
  ModesAside(const ModesAside&) = delete;
  ModesAside& operator=(const ModesAside&) = delete;

  bool none_looks() const { return !are_there_ || can_be_set_aside(); }

 private:
  static constexpr int kAll = 2;  // TorchFunctionDisabledState::ALL_DISABLED
  bool can_be_set_aside() const { return reader_.disabled_ && reader_.set_disabled_; }

  const TensorReader& reader_;
  bool are_there_;
  int before_ = 0;
};

bool TensorReader::read(PyObject* tensor, Ref* dtype, Ref* sizes) const {
  if (!tensor_type_ || !PyType_IsSubtype(Py_TYPE(tensor), tensor_type_)) return false;
  TracingAside tracing(*this);
  ModesAside modes(*this, true);
  *dtype = dtype_.get(tensor);
  *sizes = sizes_.get(tensor);
  return *dtype && *sizes && PyTuple_Check(sizes->get());
}

std::string TensorReader::dtype_name(PyObject* dtype) { return name_of(dtype); }

TensorReader::TracingAside::TracingAside(const TensorReader& reader) : reader_(reader) {
  if (!reader.is_tracing() || !reader.get_tracing_state_ || !reader.set_tracing_state_) return;
  state_ = Ref(PyObject_CallFunctionObjArgs(reader.get_tracing_state_, nullptr));
  Ref none(state_ ? PyObject_CallFunctionObjArgs(reader.set_tracing_state_, Py_None, nullptr) : nullptr);
  if (!none) PyErr_Clear();
}

TensorReader::TracingAside::~TracingAside() {
  if (!state_) return;
  Ref none(PyObject_CallFunctionObjArgs(reader_.set_tracing_state_, state_.get(), nullptr));
  if (!none) PyErr_Clear();
}

void TensorReader::add(CallKey& key, PyObject* tensor) const {
  ModesAside modes(*this);
  bool traced = *tracing_state_() != nullptr;  // torch.jit.trace would take the sizes into its graph
  if (traced || !modes.none_looks()) return key.add_text(TokenKind::kTypeName, "Tensor");
  Ref dtype = dtype_.get(tensor);
  if (!dtype) return key.add_text(TokenKind::kTypeName, "Tensor");
  Ref sizes = sizes_.get(tensor);
  add_sizes(key, index_of(dtype.get()), sizes.get());
}

void TensorReader::add_sizes(CallKey& key, uint8_t dtype, PyObject* sizes) {
  Py_ssize_t rank = sizes && PyTuple_Check(sizes) ? PyTuple_Size(sizes) : -1;
  int64_t numbers[kMaxRank];
  bool plain = rank >= 0 && rank <= static_cast<Py_ssize_t>(kMaxRank);
  for (Py_ssize_t i = 0; plain && i < rank; ++i) {
    // A symbolic size, asked for its value, would become a guard of the program that is being traced.
    PyObject* size = PyTuple_GetItem(sizes, i);
    plain = PyLong_CheckExact(size);
    if (plain) numbers[i] = PyLong_AsLongLong(size);
  }
  if (!plain) return key.add_token({TokenKind::kUnsized, dtype});
  if (uint64_t* words = key.add_tensor(dtype, static_cast<size_t>(rank))) std::copy_n(numbers, rank, words);
}

}  // namespace lamina

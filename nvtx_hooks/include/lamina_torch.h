// One line at the top of a C++ module's forward() makes its calls ranges for Lamina, as those of Python modules are:
//
//   torch::Tensor NetImpl::forward(torch::Tensor x) {
//     LAMINA_MODULE_RANGE(*this);
//     ...
//
// The range is in the NVTX domain "lamina": "Linear(weight=float32[4, 4], bias=float32[4]) @ Net.layers.0.fc". The path
// is learnt from the ranges around it, whose modules have this one as a child; a module that is no child of theirs is
// "path.(Class)", and the outermost one is its class. Needs C++17, the headers of NVTX 3 and -ldl. Without a tool that
// listens to NVTX a call costs a comparison.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <torch/nn/module.h>

#include <cctype>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#define LAMINA_MODULE_RANGE(module) ::lamina::ModuleRange lamina_module_range_(module)

namespace lamina {
namespace detail {

inline nvtxDomainHandle_t module_domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("lamina");
  return domain;
}

// The name of a dtype in Python. c10 has its own for these, and for the others the same but for capitals.
inline std::string dtype_name(c10::ScalarType dtype) {
  static const char* const kNames[][2] = {
      {"Byte", "uint8"},   {"Char", "int8"},     {"Short", "int16"},    {"Int", "int32"},
      {"Long", "int64"},   {"Half", "float16"},  {"Float", "float32"},  {"Double", "float64"},
      {"ComplexHalf", "complex32"}, {"ComplexFloat", "complex64"}, {"ComplexDouble", "complex128"}};
  std::string name = c10::toString(dtype);
  for (const auto& known : kNames) {
    if (name == known[0]) return known[1];
  }
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

inline std::string tensor_text(const at::Tensor& tensor) {
  std::string out = dtype_name(tensor.scalar_type()) + "[";
  for (int64_t size : tensor.sizes()) out += (out.back() == '[' ? "" : ", ") + std::to_string(size);
  return out + "]";
}

// "Linear" of torch::nn::LinearImpl, "Net" of (anonymous namespace)::Net<4>.
inline std::string class_name(const torch::nn::Module& module) {
  std::string name = module.name();
  name = name.substr(0, name.find('<'));
  size_t colons = name.rfind("::");
  if (colons != std::string::npos) name = name.substr(colons + 2);
  if (name.size() > 4 && name.compare(name.size() - 4, 4, "Impl") == 0) name.resize(name.size() - 4);
  return name;
}

inline std::string parameters_text(const torch::nn::Module& module) {
  std::string out;
  for (const auto& parameter : module.named_parameters(/*recurse=*/false)) {
    if (!parameter.value().defined()) continue;
    out += (out.empty() ? "(" : ", ") + parameter.key() + "=" + tensor_text(parameter.value());
  }
  return out.empty() ? out : out + ")";
}

// The names of the children that lead from one module to another: ".layers.0.fc"; empty if none do.
inline std::string path_between(const torch::nn::Module& from, const torch::nn::Module& to) {
  for (const auto& child : from.named_children()) {
    if (child.value().get() == &to) return "." + child.key();
    std::string rest = path_between(*child.value(), to);
    if (!rest.empty()) return "." + child.key() + rest;
  }
  return "";
}

// What is said of a module at one place. Never destroyed; there is one for each text.
struct ModuleName {
  std::string path;
  std::string text;
  nvtxStringHandle_t handle;
};

inline const ModuleName* intern(const std::string& class_and_parameters, const std::string& path) {
  static auto& mutex = *new std::mutex;
  static auto& names = *new std::unordered_map<std::string, std::unique_ptr<const ModuleName>>;
  std::string text = class_and_parameters + " @ " + path;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<const ModuleName>& name = names[text];
  if (!name) name.reset(new ModuleName{path, text, nvtxDomainRegisterStringA(module_domain(), text.c_str())});
  return name.get();
}

}  // namespace detail

class ModuleRange {
 public:
  explicit ModuleRange(const torch::nn::Module& module) : module_(module) {
    if (!detail::module_domain()) return;
    try {
      name_ = find_name();
    } catch (...) {  // no memory, or parameters of a kind that have no sizes: the call then has no range
      return;
    }
    outer_ = std::exchange(innermost(), this);
    push();
  }
  ~ModuleRange() {
    if (!name_) return;
    innermost() = outer_;
    nvtxDomainRangePop(detail::module_domain());
  }
  ModuleRange(const ModuleRange&) = delete;
  ModuleRange& operator=(const ModuleRange&) = delete;

 private:
  // Names this thread used, by module and the name around it. A module that was destroyed may have left its address to
  // another: its weak pointer has expired then.
  struct Known {
    std::weak_ptr<const torch::nn::Module> module;
    const detail::ModuleName* name;
  };
  struct Key {
    const torch::nn::Module* module;
    const detail::ModuleName* outer;
    bool operator==(const Key& other) const { return module == other.module && outer == other.outer; }
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.module) * 31 + std::hash<const void*>()(key.outer);
    }
  };

  static ModuleRange*& innermost() {
    static thread_local ModuleRange* range = nullptr;
    return range;
  }

  const detail::ModuleName* find_name() const {
    static thread_local std::unordered_map<Key, Known, Hash> known;
    const Key key{&module_, innermost() ? innermost()->name_ : nullptr};
    auto found = known.find(key);
    if (found != known.end() && !found->second.module.expired()) return found->second.name;
    const detail::ModuleName* name =
        detail::intern(detail::class_name(module_) + detail::parameters_text(module_), find_path());
    if (known.size() >= kMaxKnown) known.clear();
    known[key] = Known{module_.weak_from_this(), name};
    return name;
  }

  std::string find_path() const {
    for (const ModuleRange* range = innermost(); range; range = range->outer_) {
      if (&range->module_ == &module_) return range->name_->path;
      std::string path = detail::path_between(range->module_, module_);
      if (!path.empty()) return range->name_->path + path;
    }
    std::string name = detail::class_name(module_);
    return innermost() ? innermost()->name_->path + ".(" + name + ")" : name;
  }

  void push() const {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = name_->handle ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
    if (name_->handle) {
      event.message.registered = name_->handle;
    } else {
      event.message.ascii = name_->text.c_str();
    }
    nvtxDomainRangePushEx(detail::module_domain(), &event);
  }

  static constexpr size_t kMaxKnown = 16384;

  const torch::nn::Module& module_;
  const detail::ModuleName* name_ = nullptr;
  ModuleRange* outer_ = nullptr;
};

}  // namespace lamina

#include "nvtx_hooks/hook/module_describer.h"

#include <dlfcn.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

namespace lamina {
namespace {

constexpr size_t kMaxParametersText = 1000;  // bytes

// Arguments of forward that are caches.
constexpr std::string_view kCaches[] = {"past_key_values", "past_key_value", "kv_cache",  "kv_caches",    "cache",
                                        "caches",          "past",           "layer_past", "use_cache",   "cache_params",
                                        "cache_position",  "start_pos",      "input_pos"};

std::string text_of(PyObject* string) {
  Ref bytes(string && PyUnicode_Check(string) ? PyUnicode_AsEncodedString(string, "utf-8", "replace") : nullptr);
  const char* text = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "(unnamed)";
}

PyObject* item(const Ref& dict, const char* key) { return dict ? PyDict_GetItemString(dict.get(), key) : nullptr; }

// The object's own dict, past any __getattribute__; null if it has none. A traced module's is that of the module inside of it.
Ref dict_of(PyObject* object) {
  static PyObject* modules = PyUnicode_InternFromString("_modules");
  Ref dict(PyObject_GenericGetDict(object, nullptr));
  if (!dict) return PyErr_Clear(), Ref();
  if (PyDict_GetItem(dict.get(), modules)) return dict;
  PyObject* inner = item(dict, "_actual_script_module");
  return inner ? dict_of(inner) : std::move(dict);
}

Ref called(PyObject* object, const char* method) {
  Ref result(object ? PyObject_CallMethod(object, method, nullptr) : nullptr);
  if (!result) PyErr_Clear();
  return result;
}

// The dict of children; that of a ScriptModule is inside of a wrapper.
PyObject* children_of(const Ref& dict) {
  PyObject* children = item(dict, "_modules");
  if (children && !PyDict_Check(children)) children = item(dict_of(children), "_python_modules");
  return children && PyDict_Check(children) ? children : nullptr;
}

std::string type_name(PyTypeObject* type) {
  // Since 3.11. Before, a metaclass may have a say.
  static auto* get_name = reinterpret_cast<PyObject* (*)(PyTypeObject*)>(dlsym(RTLD_DEFAULT, "PyType_GetName"));
  Ref name(get_name ? get_name(type) : PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__name__"));
  if (!name) PyErr_Clear();
  return text_of(name.get());
}

// A ScriptModule's own class is always RecursiveScriptModule; its C++ object knows that of the module it was made from.
std::string class_name(PyObject* module, const Ref& dict) {
  PyObject* script = item(dict, "_c");
  std::string name = type_name(Py_TYPE(module));
  if (!script || type_name(Py_TYPE(script)) != "ScriptModule") return name;
  Ref type = called(script, "_type");
  Ref original = called(type.get(), "name");
  return original ? text_of(original.get()) : name;
}

PyObject* referent(PyObject* weak) {
  PyObject* object = weak ? PyWeakref_GetObject(weak) : nullptr;
  return object && object != Py_None ? object : nullptr;
}

Place place_of(PyObject* parent, PyObject* key) {
  Ref weak(PyWeakref_NewRef(parent, nullptr));
  if (!weak) return PyErr_Clear(), Place{};
  return {std::move(weak), Ref::borrowed(key)};
}

// ---- paths

struct Level {
  PyObject* module;  // alive, as the one above is
  std::string prefix;
};

// Breadth first: most callers are the parent itself. The path below, and the place in the direct parent.
bool find_below(PyObject* root, const PyObject* wanted, std::string* path, Place* place) {
  std::unordered_set<PyObject*> seen{root};
  std::vector<Level> level, below;
  level.push_back({root, ""});
  for (; !level.empty(); level.swap(below), below.clear()) {
    for (const Level& parent : level) {
      Ref dict = dict_of(parent.module);
      PyObject* children = children_of(dict);
      PyObject *key = nullptr, *child = nullptr;
      Py_ssize_t position = 0;
      while (children && PyDict_Next(children, &position, &key, &child)) {
        if (child == wanted) {
          *path = parent.prefix + text_of(key);
          *place = place_of(parent.module, key);
          return true;
        }
        if (child != Py_None && seen.insert(child).second) below.push_back({child, parent.prefix + text_of(key) + "."});
      }
    }
  }
  return false;
}

// ---- what decodes

bool is_cache(PyObject* name) {
  return std::ranges::any_of(kCaches, [&](std::string_view cache) { return PyUnicode_CompareWithASCIIString(name, cache.data()) == 0; });
}

Ref attribute(PyObject* object, const char* name) {
  Ref value(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value;
}

// Attributes of functions and code objects are C.
bool takes_a_cache(PyTypeObject* type) {
  Ref forward = attribute(reinterpret_cast<PyObject*>(type), "forward");
  for (int wraps = 0; forward && wraps < 32; ++wraps) {
    PyObject* inner = item(dict_of(forward.get()), "__wrapped__");
    if (!inner) break;
    forward = Ref::borrowed(inner);
  }
  if (!forward || type_name(Py_TYPE(forward.get())) != "function") return false;
  Ref code = attribute(forward.get(), "__code__");
  if (!code) return false;
  Ref names = attribute(code.get(), "co_varnames");
  Ref plain = attribute(code.get(), "co_argcount"), named = attribute(code.get(), "co_kwonlyargcount");
  if (!names || !plain || !named) return false;
  Py_ssize_t count = std::min<Py_ssize_t>(PyLong_AsLong(plain.get()) + PyLong_AsLong(named.get()), PyTuple_Size(names.get()));
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (is_cache(PyTuple_GetItem(names.get(), i))) return true;
  }
  return false;
}

long integer(const Ref& dict, const char* name) {
  PyObject* value = item(dict, name);
  return value && PyLong_CheckExact(value) ? PyLong_AsLong(value) : -1;
}

// Until `visit(module, its dict)` is false.
void visit_all(PyObject* root, const auto& visit) {
  std::unordered_set<PyObject*> seen{root};
  std::vector<PyObject*> rest{root};
  while (!rest.empty()) {
    PyObject* module = rest.back();
    Ref dict = dict_of(module);
    rest.pop_back();
    if (!visit(module, dict)) return;
    PyObject* children = children_of(dict);
    PyObject *key = nullptr, *child = nullptr;
    Py_ssize_t position = 0;
    while (children && PyDict_Next(children, &position, &key, &child)) {
      if (child != Py_None && seen.insert(child).second) rest.push_back(child);
    }
  }
}

// Its largest embedding is that of as many tokens as one of its layers gives.
bool gives_tokens(PyObject* module) {
  long tokens = -1;
  std::set<long> outputs;
  visit_all(module, [&](PyObject*, const Ref& dict) {
    tokens = std::max(tokens, integer(dict, "num_embeddings"));
    outputs.insert(integer(dict, "out_features"));
    return true;
  });
  return tokens > 0 && outputs.contains(tokens);
}

bool is_replica(const Ref& dict) { return item(dict, "_is_replica") == Py_True; }  // of DataParallel, made anew at each call

Decoding decoding_of(PyObject* module, const Ref& dict) {
  if (is_replica(dict)) return Decoding::kNone;
  if (takes_a_cache(Py_TYPE(module))) return Decoding::kCached;
  return gives_tokens(module) ? Decoding::kWhole : Decoding::kNone;
}

}  // namespace

PyObject* child_at(PyObject* parent, PyObject* key) {
  static PyObject* modules = PyUnicode_InternFromString("_modules");
  PyObject* module = referent(parent);
  if (!module) return nullptr;
  // At every call of a module: the usual one without the checks of dict_of().
  Ref dict(PyObject_GenericGetDict(module, nullptr));
  PyObject* children = dict ? PyDict_GetItemWithError(dict.get(), modules) : nullptr;
  if (!children || !PyDict_Check(children)) children = children_of(dict = dict_of(module));
  PyObject* child = children ? PyDict_GetItemWithError(children, key) : nullptr;
  if (!child) PyErr_Clear();
  return child;
}

// ---- parameters

std::string ModuleDescriber::tensor_text(PyObject* tensor) const {
  Ref dtype, sizes;
  // A lazy parameter has no shape yet.
  bool lazy = type_name(Py_TYPE(tensor)).starts_with("Uninitialized");
  if (lazy || !tensors_.read(tensor, &dtype, &sizes)) return "?";
  std::string text = TensorReader::dtype_name(dtype.get()) + "[";
  for (Py_ssize_t i = 0; i < PyTuple_Size(sizes.get()); ++i) {
    PyObject* size = PyTuple_GetItem(sizes.get(), i);
    text += (i > 0 ? ", " : "") + (PyLong_CheckExact(size) ? std::to_string(PyLong_AsLongLong(size)) : "?");
  }
  return text + "]";
}

// (name, tensor) of its own parameters, in order. Replicas of DataParallel have them elsewhere, ScriptModules in C++.
static std::vector<std::pair<Ref, Ref>> own_parameters(const Ref& dict) {
  std::vector<std::pair<Ref, Ref>> found;
  PyObject* parameters = item(dict, "_parameters");
  if (parameters && !PyDict_Check(parameters)) {
    Ref items = called(item(dict_of(parameters), "_c"), "items");
    for (Py_ssize_t i = 0; items && PyList_Check(items.get()) && i < PyList_Size(items.get()); ++i) {
      PyObject* pair = PyList_GetItem(items.get(), i);
      found.emplace_back(Ref::borrowed(PyTuple_GetItem(pair, 0)), Ref::borrowed(PyTuple_GetItem(pair, 1)));
    }
    return found;
  }
  if (!parameters || PyDict_Size(parameters) == 0) parameters = item(dict, "_former_parameters");
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (parameters && PyDict_Check(parameters) && PyDict_Next(parameters, &position, &key, &value)) {
    if (value != Py_None) found.emplace_back(Ref::borrowed(key), Ref::borrowed(value));
  }
  return found;
}

std::string ModuleDescriber::parameters_text(PyObject* dict) const {
  std::string text;
  for (const auto& [name, value] : own_parameters(Ref::borrowed(dict))) {
    std::string parameter = text_of(name.get()) + "=" + tensor_text(value.get());
    bool fits = text.size() + parameter.size() <= kMaxParametersText;
    text += (text.empty() ? "" : ", ") + (fits ? parameter : "...");
    if (!fits) break;
  }
  return text.empty() ? "" : "(" + text + ")";
}

Place ModuleDescriber::first_parameter(PyObject* module) const {
  Place place;
  visit_all(module, [&](PyObject* owner, const Ref& dict) {
    PyObject* parameters = item(dict, "_parameters");
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (parameters && PyDict_Check(parameters) && PyDict_Next(parameters, &position, &key, &value)) {
      if (value == Py_None) continue;
      place = place_of(owner, key);
      return false;
    }
    return true;
  });
  return place;
}

PyObject* ModuleDescriber::dtype_at(const Place& place) const {
  PyObject* owner = referent(place.parent.get());
  PyObject* parameters = owner ? item(dict_of(owner), "_parameters") : nullptr;
  PyObject* tensor = parameters && PyDict_Check(parameters) ? PyDict_GetItem(parameters, place.key.get()) : nullptr;
  Ref dtype, sizes;
  return tensor && tensors_.read(tensor, &dtype, &sizes) ? dtype.get() : nullptr;
}

// ---- roots

// Roots of one class are told apart by a number.
std::string ModuleDescriber::root_path(PyObject* module, PyObject* dict, const std::string& name) {
  if (is_replica(Ref::borrowed(dict))) return name;
  auto [known, added] = roots_.try_emplace(module);
  if (added || known->second.name != name) {
    if (!added) numbers_[known->second.name][known->second.number] = false;
    std::vector<bool>& taken = numbers_[name];
    auto free = static_cast<size_t>(std::ranges::find(taken, false) - taken.begin());
    if (free == taken.size()) taken.push_back(true);
    taken[free] = true;
    known->second = {name, free};
  }
  size_t number = known->second.number;
  return number == 0 ? name : name + "#" + std::to_string(number + 1);
}

void ModuleDescriber::forget_root(const PyObject* module) {
  auto known = roots_.find(module);
  if (known == roots_.end()) return;
  numbers_[known->second.name][known->second.number] = false;
  roots_.erase(known);
}

// ---- all of it

Description ModuleDescriber::describe(PyObject* module, const std::vector<OpenModule>& callers) {
  Description description;
  Ref dict = dict_of(module);
  std::string name = class_name(module, dict);
  if (callers.empty()) {
    description.path = root_path(module, dict.get(), name);
    description.decoding = decoding_of(module, dict);
  } else {
    description.path = *callers[0].path + ".(" + name + ")";
    for (const OpenModule& caller : callers) {
      std::string below;
      if (caller.module == module) {
        description.path = *caller.path;
        break;
      }
      if (!find_below(caller.module, module, &below, &description.place)) continue;
      description.path = *caller.path + "." + below;
      break;
    }
  }
  description.name = name + (dict ? parameters_text(dict.get()) : "");
  return description;
}

}  // namespace lamina

#include "script_modules.h"

#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>

namespace lamina {
namespace {

constexpr size_t kMaxTexts = 16384;
constexpr int kMaxContainers = 3;  // in each other
constexpr const char* kRoot = "TOP";
constexpr const char* kSelf = "SELF";
constexpr const char* kUnknownInstance = "INSTANCE_NAME_UNKNOWN";

struct Child {
  std::string path;
  c10::ClassTypePtr type;
  int found = 0;
};

c10::ClassTypePtr module_attribute(const c10::ClassType& type, const std::string& name) {
  c10::TypePtr attribute = type.findAttribute(name);
  c10::ClassTypePtr module = attribute ? attribute->cast<c10::ClassType>() : nullptr;
  return module && module->is_module() ? module : nullptr;
}

bool has_class_name(const c10::ClassType& type, const std::string& name) { return type.name() && type.name()->name() == name; }

// The interpreter leaves out modules that are not called, as a ModuleList is not: these are searched.
void find_in_containers(const c10::ClassType& type, const std::string& name, const std::string& class_name,
                        const std::string& prefix, int depth, Child& child) {
  for (size_t i = 0; i < type.numAttributes(); ++i) {
    const std::string& container_name = type.getAttributeName(i);
    c10::ClassTypePtr container = module_attribute(type, container_name);
    if (!container) continue;
    std::string path = prefix + container_name + ".";
    c10::ClassTypePtr found = module_attribute(*container, name);
    if (found && has_class_name(*found, class_name)) {
      ++child.found;
      child.path = path + name;
      child.type = found;
    }
    if (depth < kMaxContainers) find_in_containers(*container, name, class_name, path, depth + 1, child);
  }
}

// Where a parent of this type has the child; "?" stands for containers of which several could be meant.
Child find_child(const c10::ClassTypePtr& parent, const std::string& name, const std::string& class_name) {
  if (name.empty() || name == kUnknownInstance) return {"(" + class_name + ")", nullptr};
  if (!parent) return {name, nullptr};
  c10::ClassTypePtr direct = module_attribute(*parent, name);
  if (direct && has_class_name(*direct, class_name)) return {name, direct};
  Child child;
  find_in_containers(*parent, name, class_name, "", 1, child);
  if (child.found == 1) return child;
  return {child.found ? "?." + name : name, child.found ? child.type : nullptr};
}

}  // namespace

uint64_t ScriptModules::enter(const Text* range, c10::ClassTypePtr self) {
  levels_.push_back({++last_number_, 0, range != nullptr, std::move(self), {}});
  hierarchy_.clear();
  if (range) push(*range);
  return last_number_;
}

bool ScriptModules::leave(uint64_t number) {
  while (levels_.size() > 1 && levels_.back().number >= number) {
    if (levels_.back().open_ops > 0) return false;
    leave_innermost();
  }
  return true;
}

void ScriptModules::leave_innermost() {
  Level& level = levels_.back();
  close_to(level, 0);
  if (level.has_range) pop();
  levels_.pop_back();
  hierarchy_.clear();
}

// Closes and opens what lies between the modules of the op before and those of the op to come.
void ScriptModules::follow() {
  std::vector<std::string> hierarchy = torch::jit::currentModuleHierarchy();
  if (hierarchy == hierarchy_) return;
  std::vector<Step> steps = parse(hierarchy);
  Level& level = level_of(steps);
  add_root(level, steps);
  size_t common = 0;
  while (common < std::min(steps.size(), level.modules.size()) && level.modules[common].step == steps[common]) ++common;
  close_to(level, common);
  for (size_t i = common; i < steps.size(); ++i) open(level, std::move(steps[i]));
  hierarchy_ = std::move(hierarchy);
}

// A function that was not inlined (the method of an interface) is entered inside of the same interpreter, which goes on
// to tell the modules from its own root. It then changes those of the function around it. One that was entered by way of
// Python has an interpreter and a root of its own.
ScriptModules::Level& ScriptModules::level_of(const std::vector<Step>& steps) {
  size_t i = levels_.size() - 1;
  for (; i > 1; --i) {
    const Level& level = levels_[i];
    bool is_root = level.self && (!has_root(steps) || has_class_name(*level.self, steps[0].class_name));
    if (is_root || level.has_range || !level.modules.empty() || levels_[i - 1].open_ops > 0) break;
  }
  return levels_[i];
}

// A part of a graph that PyTorch runs by itself ("<forward op>", where there is a gradient) lacks the root.
void ScriptModules::add_root(const Level& level, std::vector<Step>& steps) {
  if (has_root(steps) || !level.self || !level.self->name()) return;
  steps.insert(steps.begin(), Step{kRoot, level.self->name()->name()});
}

bool ScriptModules::has_root(const std::vector<Step>& steps) { return !steps.empty() && steps[0].instance == kRoot; }

void ScriptModules::open(Level& level, Step step) {
  Module module{std::move(step), "", nullptr, true};
  const std::string& class_name = module.step.class_name;
  if (level.modules.empty()) {
    // The function's own module has its range from elsewhere: the function's, or that of the Python module.
    module.has_range = module.step.instance != kRoot;
    module.path = class_name;
    if (level.self && has_class_name(*level.self, class_name)) module.type = level.self;
  } else {
    const Module& parent = level.modules.back();
    Child child = find_child(parent.type, module.step.instance, class_name);
    module.path = parent.path + "." + child.path;
    module.type = child.type;
  }
  const Text* range = module.has_range ? text(class_name, module.path) : nullptr;
  level.modules.push_back(std::move(module));
  if (range) push(*range);
}

void ScriptModules::close_to(Level& level, size_t count) {
  while (level.modules.size() > count) {
    if (level.modules.back().has_range) pop();
    level.modules.pop_back();
  }
}

const Text* ScriptModules::text(const std::string& class_name, const std::string& path) {
  std::string words = class_name + " @ " + path;
  auto found = texts_.find(words);
  if (found != texts_.end()) return found->second.get();
  if (texts_.size() >= kMaxTexts) texts_.clear();
  auto made = std::make_unique<const Text>(words);
  return texts_.emplace(std::move(words), std::move(made)).first->second.get();
}

// Entries are "instance(Class)::method". Functions ("::name") and methods of the same module are no modules.
std::vector<ScriptModules::Step> ScriptModules::parse(const std::vector<std::string>& hierarchy) {
  std::vector<Step> steps;
  for (const std::string& entry : hierarchy) {
    size_t open = entry.find('('), close = entry.find(')');
    if (open == std::string::npos || close == std::string::npos || close <= open + 1) continue;
    Step step{entry.substr(0, open), entry.substr(open + 1, close - open - 1)};
    if (step.instance != kSelf) steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace lamina

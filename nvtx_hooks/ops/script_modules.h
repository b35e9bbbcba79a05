// The modules that one thread's TorchScript interpreters are in. An interpreter calls no module: it runs one graph into
// which all of them were inlined, and only knows of each op where it came from. So a module's range is opened before the
// first op out of it, and closed when an op comes from elsewhere or the function ends.
#pragma once

#include <ATen/core/class_type.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nvtx_hooks/text/nvtx.h"

namespace lamina {

class ScriptModules {
 public:
  ScriptModules() : levels_(1) {}

  // Around an op's range.
  void before_op() {
    if (levels_.size() > 1 && levels_.back().open_ops == 0) [[unlikely]] follow();
  }
  void op_opened() { ++levels_.back().open_ops; }
  void before_op_closes() {
    while (levels_.back().open_ops == 0 && levels_.size() > 1) leave_innermost();
    --levels_.back().open_ops;
  }

  // A TorchScript function: its range (none if it has no text), and a level of modules inside of it. `self` is the module
  // whose method it is, if any. Returns a number by which it is left.
  uint64_t enter(const Text* range, c10::ClassTypePtr self);
  // Leaves the function and what was entered in it. It may be left already. False if an op is open in it: later, then.
  bool leave(uint64_t number);

  // Whether the next function is entered from outside of the interpreter.
  bool outside() const { return levels_.size() == 1; }
  // "Class @ path"
  const Text* text(const std::string& class_name, const std::string& path);

 private:
  struct Step {  // one entry of the interpreter's module hierarchy
    std::string instance, class_name;
    bool operator==(const Step& other) const { return instance == other.instance && class_name == other.class_name; }
  };
  struct Module {
    Step step;
    std::string path;
    c10::ClassTypePtr type;  // null if not known
    bool has_range;
  };
  // A function that is being interpreted. The first is no function: it holds the ops outside of all.
  struct Level {
    uint64_t number = 0;
    int open_ops = 0;
    bool has_range = false;
    c10::ClassTypePtr self;
    std::vector<Module> modules;  // open ones, from the root on
  };

  void follow();
  void open(Level& level, Step step);
  void close_to(Level& level, size_t count);
  void leave_innermost();
  Level& level_of(const std::vector<Step>& steps);
  static void add_root(const Level& level, std::vector<Step>& steps);
  static bool has_root(const std::vector<Step>& steps);
  static std::vector<Step> parse(const std::vector<std::string>& hierarchy);

  std::vector<Level> levels_;
  uint64_t last_number_ = 0;
  std::vector<std::string> hierarchy_;  // as it was told last; empty if that was of another function
  std::unordered_map<std::string, std::unique_ptr<const Text>> texts_;
};

}  // namespace lamina

#include "report/run/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/errors.h"
#include "report/run/child_process.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

RunOptions options() {
  RunOptions result;
  result.recorder = "/lib/liblamina_inject.so";
  return result;
}

std::string value_of(const RunOptions& given, const std::string& name) {
  for (const auto& [key, value] : recorder_variables(given)) {
    if (key == name) return value;
  }
  return "(not set)";
}

std::string context_of(std::vector<std::string> items) {
  RunOptions given = options();
  given.context = std::move(items);
  return value_of(given, "LAMINA_CONTEXT");
}

std::string patterns_of(std::vector<std::string> items) {
  RunOptions given = options();
  given.phase_patterns = std::move(items);
  return value_of(given, "LAMINA_PHASE_PATTERN");
}

std::string formatted(const std::string& name, const Variables& variables) {
  for (const VariablesFormat& format : kVariablesFormats) {
    if (name == format.name) return format.text(variables);
  }
  return "(no such format)";
}

// A folder of its own for each test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/lamina_launch_test.XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(file(name)).parent_path());
    std::ofstream(file(name)) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name));
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

ProgramEnd run_shell(const std::string& script, const Variables& variables = {}) {
  return run_program({"sh", "-c", script}, variables);
}

// ---- variables

TEST(RecorderVariables, PreloadKeepsWhatWasThere) {
  RunOptions given = options();
  EXPECT_EQ(value_of(given, "LD_PRELOAD"), "(not set)");
  given.preload = true;
  EXPECT_EQ(value_of(given, "LD_PRELOAD"), "/lib/liblamina_inject.so");
  given.preloaded = "/x/libtcmalloc.so";
  EXPECT_EQ(value_of(given, "LD_PRELOAD"), "/lib/liblamina_inject.so:/x/libtcmalloc.so");
  given.recorder = "/my libs/liblamina_inject.so";
  EXPECT_THROW(value_of(given, "LD_PRELOAD"), UsageError);
}

TEST(RecorderVariables, BothDoorsLeadToTheRecorder) {
  EXPECT_THAT(recorder_variables(options()), ElementsAre(Pair("CUDA_INJECTION64_PATH", "/lib/liblamina_inject.so"),
                                                         Pair("NVTX_INJECTION64_PATH", "/lib/liblamina_inject.so")));
}

TEST(RecorderVariables, EveryOptionHasItsVariable) {
  RunOptions given = options();
  given.out = "/tmp/profile";
  given.collect = "decode,prefill";
  given.every = 4;
  given.torch = "modules";
  given.stacks = "off";
  given.extensions = "my_ops.*";
  EXPECT_EQ(value_of(given, "LAMINA_OUT"), "/tmp/profile");
  EXPECT_EQ(value_of(given, "LAMINA_COLLECT"), "decode,prefill");
  EXPECT_EQ(value_of(given, "LAMINA_EVERY"), "4");
  EXPECT_EQ(value_of(given, "LAMINA_TORCH"), "modules");
  EXPECT_EQ(value_of(given, "LAMINA_STACKS"), "off");
  EXPECT_EQ(value_of(given, "LAMINA_EXT"), "my_ops.*");
}

TEST(RecorderVariables, ContextValuesKeepTheirTypes) {
  EXPECT_EQ(context_of({"model=meta/Llama 3", "batch_size=8", "ratio=0.5", "eager=true", "dtype=null",
                        "date=2024-01-01", "args={\"tp\": 2}", "empty=", "equation=a=b", "nan=NaN"}),
            R"({"model":"meta/Llama 3","batch_size":8,"ratio":0.5,"eager":true,"dtype":null,"date":"2024-01-01",)"
            R"("args":{"tp":2},"empty":"","equation":"a=b","nan":"NaN"})");
}

TEST(RecorderVariables, ContextIsOneLineOfUtf8) {
  EXPECT_EQ(context_of({"a=x\ny", "b=\xff"}), "{\"a\":\"x\\ny\",\"b\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(context_of({"a=1", "a=2"}), R"({"a":2})");
  std::string deep(100000, '[');
  EXPECT_EQ(nlohmann::json::parse(context_of({"a=" + deep + std::string(100000, ']')}))["a"].get<std::string>().size(),
            200000u);
}

TEST(RecorderVariables, PatternsAreJoined) {
  EXPECT_EQ(patterns_of({"decode=execute_*", "prefill=ctx=[1-9]*"}), "decode=execute_*;prefill=ctx=[1-9]*");
}

TEST(RecorderVariables, RefusesWhatTheRecorderWouldNotUnderstand) {
  EXPECT_THROW(context_of({"model"}), UsageError);
  EXPECT_THROW(context_of({"=x"}), UsageError);
  EXPECT_THROW(patterns_of({"decode"}), UsageError);
  EXPECT_THROW(patterns_of({"decode="}), UsageError);
  EXPECT_THROW(patterns_of({"=x"}), UsageError);
  EXPECT_THROW(patterns_of({"decode=a;b"}), UsageError);
}

// ---- formats

TEST(ShellQuoting, LeavesNothingToTheShell) {
  EXPECT_EQ(shell_quoted("a'b $x"), R"('a'\''b $x')");
  EXPECT_EQ(shell_word("/tmp/a-b_c.d"), "/tmp/a-b_c.d");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ShellQuoting, AShellGetsTheSameText) {
  Folder folder;
  const std::string nasty = "a'b\"c\\d $HOME `id` $(id) ;&|<>*?[x]{y}~!#\n\tz''";
  std::string script = formatted("shell", {{"NASTY", nasty}}) + "printf %s \"$NASTY\" > " + folder.file("out");
  EXPECT_EQ(run_shell(script).status, 0);
  EXPECT_EQ(folder.read("out"), nasty);
}

TEST(VariablesFormats, AreWhatTheToolsTake) {
  const Variables variables = {{"A", "/x/y"}, {"B", R"({"m": "it's"})"}};
  EXPECT_EQ(formatted("shell", variables), "export A='/x/y'\nexport B='{\"m\": \"it'\\''s\"}'\n");
  EXPECT_EQ(formatted("docker", variables), "-e A=/x/y\n-e 'B={\"m\": \"it'\\''s\"}'\n");
  EXPECT_EQ(formatted("kubernetes", variables),
            "- name: A\n  value: \"/x/y\"\n- name: B\n  value: \"{\\\"m\\\": \\\"it's\\\"}\"\n");
  EXPECT_EQ(formatted("json", variables), "{\"A\":\"/x/y\",\"B\":\"{\\\"m\\\": \\\"it's\\\"}\"}\n");
  EXPECT_EQ(nlohmann::json::parse(formatted("ray", variables))["env_vars"]["A"], "/x/y");
}

// ---- folders

TEST(FindRecorder, LooksBesideTheCommand) {
  for (const char* place : {"bin/", "lib/", "lib/lamina/"}) {
    Folder folder;
    folder.write("bin/lamina", "");
    std::string library = std::string(place) + "liblamina_inject.so";
    folder.write(library, "");
    EXPECT_EQ(find_recorder(folder.file("bin")), folder.file(library));
  }
}

TEST(FindRecorder, SaysWhereItLooked) {
  Folder folder;
  try {
    find_recorder(folder.file("bin"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("liblamina_inject.so was not found in " + folder.file("bin")));
    EXPECT_THAT(error.what(), HasSubstr(folder.file("lib/lamina")));
  }
}

TEST(NewFolderName, IsThatOfTheRecorder) {
  EXPECT_THAT(new_folder_name("/usr/bin/python3", 1700000000, 42),
              testing::MatchesRegex("lamina-python3-[0-9]{8}-[0-9]{6}-42"));
}

TEST(ProfileContents, CountsTheFilesOfTheRecorder) {
  Folder folder;
  folder.write("host.1.lamina", "12345");
  folder.write("host.2.lamina", "12345");
  folder.write("notes.txt", "1");
  FolderContents contents = profile_contents(folder.file(""));
  EXPECT_EQ(contents.files, 2u);
  EXPECT_EQ(contents.bytes, 10u);
  EXPECT_EQ(profile_contents(folder.file("missing")).files, 0u);
}

TEST(SizeText, HasOneDigitAndAUnit) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1000), "1.0 kB");
  EXPECT_EQ(size_text(999'970), "1.0 MB");
  EXPECT_EQ(size_text(1'234'567), "1.2 MB");
  EXPECT_EQ(size_text(5'000'000'000'000'000), "5000.0 TB");
}

// ---- the program

TEST(RunProgram, GivesTheExitStatus) {
  EXPECT_EQ(run_shell("exit 0").status, 0);
  EXPECT_EQ(run_shell("exit 37").status, 37);
  EXPECT_EQ(run_shell("kill -TERM $$").status, 128 + SIGTERM);
  EXPECT_EQ(run_shell("kill -SEGV $$").status, 128 + SIGSEGV);
}

TEST(RunProgram, SaysWhyItCouldNotStart) {
  Folder folder;
  folder.write("text", "no program");
  ProgramEnd missing = run_program({"/nonexistent/program"}, {});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.exec_error, ENOENT);
  ProgramEnd text = run_program({folder.file("text")}, {});
  EXPECT_EQ(text.status, 126);
  EXPECT_EQ(text.exec_error, EACCES);
  EXPECT_EQ(run_shell("exit 127").exec_error, 0);
}

TEST(RunProgram, PassesArgumentsAndVariables) {
  EXPECT_EQ(run_program({"sh", "-c", R"([ "$A" = 'x y' ] && [ "$1" = '[1,2]' ] && [ -z "$2" ] && [ $# = 2 ])", "sh",
                         "[1,2]", ""},
                        {{"A", "x y"}})
                .status,
            0);
  EXPECT_EQ(getenv("A"), nullptr);
}

// What /proc/self/status has of signals in a process that `action` made ready first and then ran grep.
std::string signals_of_program(void (*make_ready)()) {
  Folder folder;
  pid_t pid = fork();
  if (pid == 0) {
    make_ready();
    _exit(run_shell("exec grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status > " + folder.file("out")).status);
  }
  int status;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  return folder.read("out");
}

// What a program sees that `make_ready` and then a plain exec started.
std::string signals_of_exec(void (*make_ready)()) {
  Folder folder;
  pid_t pid = fork();
  if (pid == 0) {
    make_ready();
    std::string script = "exec grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status > " + folder.file("out");
    execlp("sh", "sh", "-c", script.c_str(), nullptr);
    _exit(1);
  }
  int status;
  waitpid(pid, &status, 0);
  return folder.read("out");
}

TEST(RunProgram, LeavesSignalsAsTheyWere) {
  auto nothing = [] {};
  auto some = [] {
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, nullptr);
  };
  EXPECT_EQ(signals_of_program(nothing), signals_of_exec(nothing));
  EXPECT_EQ(signals_of_program(some), signals_of_exec(some));
  EXPECT_NE(signals_of_program(some), signals_of_program(nothing));
}

// A launcher in a process of its own, whose program runs `script` after saying that it is ready.
class Launcher {
 public:
  explicit Launcher(const std::string& script) {
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      _exit(run_shell("echo $$ > " + folder_.file("pid.new") + "; mv " + folder_.file("pid.new") + " " +
                      folder_.file("pid") + "; " + script)
                .status);
    }
    for (int i = 0; i < 500 && !fs::exists(folder_.file("pid")); ++i) usleep(10'000);
    usleep(50'000);  // until the script is inside its wait
  }

  pid_t pid() const { return pid_; }
  pid_t program() const { return std::stoi(folder_.read("pid")); }

  int status() const {
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
    return status;
  }

 private:
  Folder folder_;
  pid_t pid_;
};

TEST(RunProgram, ForwardsSignals) {
  for (auto [signal, name] : {std::pair(SIGTERM, "TERM"),
                              {SIGINT, "INT"},
                              {SIGHUP, "HUP"},
                              {SIGQUIT, "QUIT"},
                              {SIGUSR1, "USR1"},
                              {SIGUSR2, "USR2"}}) {
    Launcher launcher(std::string("trap 'exit 5' ") + name + "; while :; do sleep 0.02; done");
    kill(launcher.pid(), signal);
    int status = launcher.status();
    EXPECT_TRUE(WIFEXITED(status)) << name;
    EXPECT_EQ(WEXITSTATUS(status), 5) << name;
  }
}

TEST(RunProgram, AProgramThatDiesOfASignalGives128AndMore) {
  Launcher launcher("exec sleep 100");
  kill(launcher.pid(), SIGTERM);
  int status = launcher.status();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

TEST(RunProgram, StopsAndGoesOnWithTheProgram) {
  Launcher launcher("exec sleep 0.3");
  kill(launcher.pid(), SIGTSTP);
  EXPECT_TRUE(WIFSTOPPED(launcher.status()));
  kill(launcher.pid(), SIGCONT);
  int status = launcher.status();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(RunProgram, DoesNotStopWhenOnlyTheProgramIsHalted) {
  Launcher launcher("exec sleep 0.3");
  kill(launcher.program(), SIGSTOP);
  usleep(50'000);
  int status = 0;
  EXPECT_EQ(waitpid(launcher.pid(), &status, WUNTRACED | WNOHANG), 0);
  kill(launcher.program(), SIGCONT);
  EXPECT_TRUE(WIFEXITED(launcher.status()));
}

}  // namespace
}  // namespace lamina

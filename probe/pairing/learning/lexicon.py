"""Words by which tools are recognised: what runs, what a shell and a command are called, and what only looks like it.

Names are cut at underscores, capitals and seams of known words (``execCommand``, ``runcommand``). Words of other
languages are known by their stems, since agents describe their tools in the language of their makers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


RUN = _set(
    "run runs running exec execs execute executes executed executing executor execution invoke invokes launch launches "
    "spawn spawns start starts perform performs eval evaluate evaluates issue"
)
SHELL = _set("bash sh zsh fish ksh dash shell terminal console tty powershell pwsh subprocess posix unix linux")
COMMAND = _set("command commands cmd cmds cmdline commandline")
PYTHON = _set("python python3 py ipython jupyter notebook")
CODE = _set("code script source program snippet cell codeblock interpreter repl")
FOREIGN_RUN = (
    "执行", "運行", "运行", "執行", "実行", "실행", "выполн", "запуст", "запуск", "ausführ", "ausfuehr", "ejecut",
    "exécut", "executar", "esegu", "uitvoer", "uruchom", "wykon", "çalıştır", "calistir", "chạy", "تنفيذ", "تشغيل",
    "jalankan", "spust", "kör", "चला",
)  # fmt: skip
FOREIGN_SHELL = (
    "终端", "終端", "シェル", "ターミナル",
    "셸", "터미널", "терминал", "оболоч", "консол", "konsol", "consol",
)  # fmt: skip
FOREIGN_COMMAND = (
    "命令", "指令", "コマンド", "명령", "команд", "befehl", "kommando", "comando", "commande", "poleceni", "komut",
    "perintah", "lệnh", "أمر", "أوامر", "příkaz", "opdracht", "आदेश", "εντολ",
)  # fmt: skip
FOREIGN_CODE = ("代码", "代碼", "コード", "코드", "код", "código", "codice", "kod")

NOT_RUNNING = _set(
    "kill stop cancel interrupt abort output outputs log logs read get list search find lookup explain describe "
    "suggest recommend history stdin input status poll wait check validate lint parse format translate convert "
    "schedule cron approve allow deny permit permission remember register save store alias record help doc docs about "
    "info monitor watch view show display resume attach close exit count compare analyze analyse review summarize "
    "predict generate autocomplete classify audit whitelist blacklist tail subscribe notify retrieve fetch ask "
    "construct build propose preview simulate terminate peek send return returns provide provides ends end"
)
"""What a tool does that has to do with commands and runs none."""
OTHER_WORLDS = _set(
    "slash vscode editor ide browser sql sqlite postgres mysql database db redis mongo git github docker kubectl "
    "kubernetes ssh remote device robot voice keyboard mouse gui menu macro game minecraft discord slack "
    "telegram skill subagent agent task mode todo memory url http web page graphql figma unity blender godot serial "
    "gdb lldb vim emacs jira palette workflow npm maven gradle extension adb plc"
)
"""Things that have commands of their own, which are no shell's."""
OTHER_LANGUAGES = _set(
    "javascript js node typescript ts deno sql html css latex mermaid java rust ruby lua cypher graphql sparql"
)
NO_TEXT_OF_ITS_OWN = _set(
    "id ids uuid name path paths file filename files dir directory directories cwd workdir url uri pattern description "
    "reason justification explanation thought prompt message title host session filter key token regex glob language "
    "lang type kind mode old new summary question url role user email timeout shell env environment rule rules label "
    "risk purpose intent goal format encoding version branch tag"
)
"""Arguments that carry something else than a command, whatever else their name says."""
NEUTRAL_ARGUMENTS = _set("input tool_input arg arg1 __arg1 args argument arguments text value data query x")

WRITE = _set("write writes writing create creates save saves put store stores overwrite add")
READ = _set("read reads reading cat view views open opens get show load print")
FILE = _set("file files document text path")
CONTENT = _set("content contents text body data filetext")
FOREIGN_WRITE = ("写", "書", "쓰", "запис", "созда", "schreib", "escrib", "écri", "escrev", "scriv", "erstell", "crear")
FOREIGN_READ = ("读", "讀", "読", "읽", "чита", "прочит", "les", "lies", "leer", "lee", "lire", "ler", "legg")
FOREIGN_PATH = (
    "路径", "路徑", "文件", "檔", "パス", "ファイル", "경로", "파일",
    "путь", "файл", "pfad", "datei", "ruta", "archivo",
    "chemin", "fichier", "caminho", "arquivo", "percorso",
)  # fmt: skip
FOREIGN_CONTENT = ("内容", "內容", "내용", "содерж", "текст", "inhalt", "contenido", "contenu", "conteúdo", "contenuto")
FINISH = _set(
    "finish finished finalize complete completed completion done end exit quit submit submission terminate conclude "
    "final answer finalanswer"
)
"""A tool that ends the task has nothing but these words and ``FINISH_BESIDE`` in its name."""
FINISH_BESIDE = _set(
    "task final answer result results work attempt the agent job solution response report with is a to and tool "
    "provide give return present interaction conversation session run all turn"
)
FOREIGN_FINISH = (
    "完成",
    "结束",
    "結束",
    "終了",
    "完了",
    "종료",
    "완료",
    "заверш",
    "beenden",
    "fertig",
    "terminar",
    "finaliz",
)

_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d?|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_KNOWN = RUN | SHELL | COMMAND | PYTHON | CODE | {"tool", "in", "the", "a"}


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier or a sentence, in lower case; glued known words are taken apart."""
    found: list[str] = []
    for piece in _PIECES.findall(name):
        word = piece.lower()
        found += [word] if word in _KNOWN else _taken_apart(word)
    return tuple(found)


@lru_cache(maxsize=4096)
def _taken_apart(word: str) -> list[str]:
    if not 5 <= len(word) <= 24:
        return [word]
    for cut in range(2, len(word) - 1):
        left, right = word[:cut], word[cut:]
        if left in _KNOWN and right in _KNOWN and max(len(left), len(right)) > 3:
            return [left, right]
    return [word]


def mentions(text: str, words: Iterable[str], latin: frozenset[str], stems: tuple[str, ...] = ()) -> bool:
    """Whether one of ``words`` is in ``latin``, or one of the ``stems`` of other languages stands in ``text``."""
    return any(word in latin for word in words) or any(stem in text.lower() for stem in stems)


def first_sentence(text: str) -> str:
    """The first sentence of a description, at most 200 characters: what the tool is for stands there."""
    return re.split(r"(?<=[.!?。！？])\s|\n", text.strip(), maxsplit=1)[0][:200]

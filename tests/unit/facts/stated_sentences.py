"""Sentences that state a rule or a decision, and near misses: prompts (``u``) and replies that changed files (``a``).

Written in three rounds, and judged once before the cue table was changed by them: RULES, DECISIONS and NEAR_MISSES
before the table was made, LATER_* after (found: 26 of 36 rules, 31 of 36 decisions; taken wrongly: 18 of 62), LAST_*
after that (33 of 34, 30 of 35; 3 of 63). The last round is the measure; all three have the same author.
"""

RULES = """\
u en Never touch generated/.
u en Always run make fmt before committing.
u en From now on, write every commit message in the imperative.
u en Please never commit directly to main.
u en All endpoints must return JSON.
u en Every public function must have a docstring.
u en Secrets must never be logged.
u en Don't edit files under vendor/ by hand.
u en Only use the standard library.
u en Use only dependencies that are MIT licensed.
u en We never push on Fridays.
u en In this project we always use tabs.
u en Do not add new dependencies without asking me.
u en You must not change the public API.
u en No function may be longer than 60 lines.
u en Migrations must always be reversible.
u de Fasse den Ordner generated/ niemals an.
u de Führe vor jedem Commit immer make fmt aus.
u de Ab jetzt schreibst du alle Kommentare auf Deutsch.
u de Niemals direkt auf main committen.
u de Alle Endpunkte müssen JSON liefern.
u de Passwörter dürfen nie geloggt werden.
u de Bitte verwende nur die Standardbibliothek.
u de Keine neuen Abhängigkeiten ohne Rückfrage.
u de Wir benutzen grundsätzlich Tabs.
u fr Ne touche jamais au dossier generated/.
u fr Lance toujours make fmt avant de committer.
u fr À partir de maintenant, écris les commentaires en français.
u fr Tous les endpoints doivent renvoyer du JSON.
u fr N'utilise que la bibliothèque standard.
u fr Il ne faut jamais journaliser les mots de passe.
u es Nunca toques la carpeta generated/.
u es Ejecuta siempre make fmt antes de hacer commit.
u es A partir de ahora escribe los comentarios en español.
u es Todos los endpoints deben devolver JSON.
u es No modifiques nunca los archivos de vendor/.
u es Usa solo la biblioteca estándar.
u it Non toccare mai la cartella generated/.
u it Esegui sempre make fmt prima del commit.
u it D'ora in poi scrivi i commenti in italiano.
u it Tutti gli endpoint devono restituire JSON.
u it Usa solo la libreria standard.
u pt Nunca altere a pasta generated/.
u pt Execute sempre make fmt antes de fazer commit.
u pt A partir de agora escreva os comentários em português.
u pt Todos os endpoints devem devolver JSON.
u pt Use apenas a biblioteca padrão.
u nl Raak de map generated/ nooit aan.
u nl Voer altijd make fmt uit voor je commit.
u nl Schrijf vanaf nu alle commentaren in het Nederlands.
u nl Alle endpoints moeten JSON teruggeven.
u nl Gebruik alleen de standaardbibliotheek.
u pl Nigdy nie zmieniaj katalogu generated/.
u pl Zawsze uruchamiaj make fmt przed commitem.
u pl Od teraz pisz komentarze po polsku.
u pl Wszystkie endpointy muszą zwracać JSON.
u pl Używaj tylko biblioteki standardowej.
u ru Никогда не трогай папку generated/.
u ru Всегда запускай make fmt перед коммитом.
u ru Отныне пиши комментарии на русском.
u ru Все эндпоинты должны возвращать JSON.
u ru Используй только стандартную библиотеку.
u zh 永远不要修改 generated/ 目录。
u zh 提交之前一定要运行 make fmt。
u zh 从现在开始，注释都用中文写。
u zh 所有接口必须返回 JSON。
u zh 禁止把密码写进日志。
u zh 不要手动编辑 vendor/ 下的文件。
u ja generated/ フォルダは絶対に変更しないでください。
u ja コミットの前に必ず make fmt を実行してください。
u ja 今後コメントはすべて日本語で書いてください。
u ja すべてのエンドポイントは JSON を返さなければならない。
u ja パスワードをログに出力してはいけません。
u ja 標準ライブラリだけを使ってください。
"""

DECISIONS = """\
u en We use PostgreSQL instead of SQLite, because several people write at once.
u en POST should answer 201.
u en Let's go with Redis rather than memcached.
u en I decided to keep the cache in memory.
u en Use httpx instead of requests.
u en Prefer dataclasses over plain dicts.
u en We'll stick with Flask.
u en The class should be called TodoStore.
u en Rather set PORT to 8000.
u en Let's drop support for Python 3.8.
u en Ports should start at 9000, not 8000.
u en We are switching from npm to pnpm.
u en The export should be sorted by date.
u en A todo should not be saved without a title.
a en I chose SQLite over PostgreSQL because it needs no server.
a en I went with a ring buffer rather than a list.
a en I used argparse instead of click, because it adds no dependency.
a en I decided to keep the old endpoint for compatibility.
a en The parser now uses a state machine instead of regular expressions.
a en We use UTC everywhere because the servers are in different zones.
a en I kept the lock file out of the repository, since it differs per platform.
a en Instead of polling, the worker now waits for a notification.
u de Wir nehmen PostgreSQL statt SQLite, weil mehrere gleichzeitig schreiben.
u de POST soll mit 201 antworten.
u de Lass uns Redis anstelle von memcached verwenden.
u de Wir bleiben bei Flask.
u de Nimm lieber httpx statt requests.
u de Die Klasse soll TodoStore heißen.
a de Ich habe SQLite statt PostgreSQL verwendet, weil es keinen Server braucht.
a de Ich habe mich für einen Ringpuffer entschieden.
a de Statt regulärer Ausdrücke verwendet der Parser jetzt einen Automaten.
u fr On utilise PostgreSQL au lieu de SQLite, parce que plusieurs personnes écrivent en même temps.
u fr POST doit répondre 201.
u fr On garde Flask.
u fr Utilise httpx plutôt que requests.
a fr J'ai choisi SQLite plutôt que PostgreSQL car il ne demande pas de serveur.
a fr J'ai décidé de garder l'ancien point d'accès.
u es Usamos PostgreSQL en lugar de SQLite porque escriben varias personas a la vez.
u es POST debe responder 201.
u es Mejor usa httpx en vez de requests.
u es Nos quedamos con Flask.
a es Elegí SQLite en lugar de PostgreSQL porque no necesita servidor.
a es He decidido mantener el endpoint antiguo.
u it Usiamo PostgreSQL invece di SQLite, perché scrivono più persone insieme.
u it POST deve rispondere 201.
u it Usa httpx al posto di requests.
a it Ho scelto SQLite invece di PostgreSQL perché non richiede un server.
a it Ho deciso di mantenere il vecchio endpoint.
u pt Usamos PostgreSQL em vez de SQLite, porque várias pessoas escrevem ao mesmo tempo.
u pt POST deve responder 201.
u pt Vamos ficar com o Flask.
a pt Escolhi SQLite em vez de PostgreSQL porque não precisa de servidor.
a pt Decidi manter o endpoint antigo.
u nl We gebruiken PostgreSQL in plaats van SQLite, omdat meerdere mensen tegelijk schrijven.
u nl POST moet 201 teruggeven.
u nl We blijven bij Flask.
a nl Ik heb voor SQLite gekozen in plaats van PostgreSQL omdat het geen server nodig heeft.
a nl Ik heb besloten het oude endpoint te behouden.
u pl Używamy PostgreSQL zamiast SQLite, ponieważ kilka osób pisze jednocześnie.
u pl POST powinien zwracać 201.
u pl Zostajemy przy Flasku.
a pl Wybrałem SQLite zamiast PostgreSQL, bo nie wymaga serwera.
a pl Zdecydowałem się zachować stary endpoint.
u ru Мы используем PostgreSQL вместо SQLite, потому что пишут сразу несколько человек.
u ru POST должен отвечать 201.
u ru Остаёмся на Flask.
a ru Я выбрал SQLite вместо PostgreSQL, потому что ему не нужен сервер.
a ru Я решил оставить старый эндпоинт.
u zh 我们用 PostgreSQL 而不是 SQLite，因为有多人同时写入。
u zh POST 应该返回 201。
u zh 我们决定继续使用 Flask。
a zh 我选择了 SQLite 而不是 PostgreSQL，因为它不需要服务器。
a zh 我决定保留旧接口。
u ja SQLite ではなく PostgreSQL を使います。複数人が同時に書き込むからです。
u ja POST は 201 を返すべきです。
u ja Flask のままにします。
a ja サーバーが不要なので、PostgreSQL ではなく SQLite を選びました。
a ja 古いエンドポイントは残すことにしました。
"""

NEAR_MISSES = """\
u en Add a DELETE route.
u en It would be nice if the page were always up to date.
u en Should we use Redis instead of memcached?
u en The test never finishes on my machine.
u en It must be a caching problem.
u en I always forget the password.
u en Don't worry about the tests.
u en Never mind.
u en This should fix it.
u en My colleague said "never use globals".
u en If we used Redis instead, it would be faster.
u en Maybe we should switch to PostgreSQL.
u en The server always returns 500.
u en You must have missed the second file.
u en Don't change that yet.
u en Why do we never see the error?
u en Only the last test fails.
u en Rename Store to TodoStore and update the tests.
u en There must be a better way.
u en I would prefer a smaller image, but I am not sure.
u en The docs say that you must call close().
u en It should work now.
u en I wish the build never broke.
u en Now run the tests instead.
u en We always get a timeout in CI.
u en Explain why the list is used instead of a set.
u en Do not do that now, first show me the plan.
u en Fix the bug where the title must be entered twice.
u en What would you use instead of Flask?
u en The button should be visible by now, but it is not.
a en I used sed to rename the class.
a en Let me check whether the tests pass first.
a en The server must be restarted for the change to take effect.
a en You should always keep a backup.
a en I will use the existing helper.
a en We could use a queue instead of a list.
a en I created app.py and added the routes.
a en Done, all tests pass because the fixture was fixed.
a en The function never returns None here.
a en If you prefer, I can use PostgreSQL instead.
a en I considered Redis instead of memcached.
u de Füge eine DELETE-Route hinzu.
u de Es wäre schön, wenn die Seite immer aktuell wäre.
u de Sollen wir Redis statt memcached nehmen?
u de Der Test wird nie fertig.
u de Das muss ein Cache-Problem sein.
u de Ich vergesse immer das Passwort.
u de Mach dir keine Sorgen um die Tests.
u de Das sollte jetzt funktionieren.
u de Vielleicht nehmen wir besser PostgreSQL statt SQLite.
a de Ich habe die Routen ergänzt und die Tests laufen lassen.
a de Der Server muss neu gestartet werden.
a de Man könnte auch Redis statt memcached nehmen.
u fr Ajoute une route DELETE.
u fr Ce serait bien que la page soit toujours à jour.
u fr Le test ne se termine jamais.
u fr Faut-il utiliser Redis au lieu de memcached ?
u fr Ça doit être un problème de cache.
a fr J'ai ajouté la route et lancé les tests.
a fr On pourrait utiliser Redis au lieu de memcached.
u es Añade una ruta DELETE.
u es Sería bueno que la página siempre estuviera al día.
u es La prueba nunca termina.
u es ¿Deberíamos usar Redis en lugar de memcached?
u es Debe ser un problema de caché.
a es He añadido la ruta y ejecutado las pruebas.
u it Aggiungi una rotta DELETE.
u it Il test non finisce mai.
u it Sarebbe bello avere la pagina sempre aggiornata.
u it Deve essere un problema di cache.
u pt Adicione uma rota DELETE.
u pt O teste nunca termina.
u pt Seria bom se a página estivesse sempre atualizada.
u nl Voeg een DELETE-route toe.
u nl De test wordt nooit klaar.
u nl Het moet een cacheprobleem zijn.
u nl Misschien kunnen we Redis gebruiken in plaats van memcached.
u pl Dodaj trasę DELETE.
u pl Test nigdy się nie kończy.
u pl To musi być problem z cache.
u pl Może lepiej użyć Redisa zamiast memcached.
u ru Добавь маршрут DELETE.
u ru Тест никогда не заканчивается.
u ru Это должно быть из-за кэша.
u ru Может, лучше взять Redis вместо memcached?
u zh 添加一个 DELETE 路由。
u zh 测试一直跑不完。
u zh 这应该是缓存的问题。
u zh 要不要用 Redis 代替 memcached？
u zh 如果页面总是最新的就好了。
u ja DELETE ルートを追加してください。
u ja テストがいつも終わりません。
u ja キャッシュの問題に違いない。
u ja memcached ではなく Redis を使うべきでしょうか？
u ja ページが常に最新だといいのですが。
a ja ルートを追加し、テストを実行しました。
"""

LATER_RULES = """\
u en One more thing: the migrations folder is off limits, never edit anything in it.
u en Always ask me before deleting a file.
u en Every commit must pass the linter.
u en Don't use print for logging, use structlog.
u en Only I may merge to the release branch.
u en You should never hardcode credentials.
u en Under no circumstances should you run the deploy script.
u en Avoid global state.
u en Make sure to run the linter after each change.
u en Keep functions short and never nest more than three levels.
u en In future, put new tests next to the code they cover.
u de Bevor du etwas löschst, frag mich immer.
u de Verwende nie Wildcard-Importe.
u de Die Datei config.yml darf nicht verändert werden.
u de Jede Funktion braucht einen Test.
u de Schreib in Zukunft kürzere Commit-Nachrichten.
u de Du sollst niemals selbst pushen.
u fr N'utilise jamais de variables globales.
u fr Chaque fonction doit avoir un test.
u fr Dorénavant, demande-moi avant de supprimer un fichier.
u es Nunca borres archivos sin preguntar.
u es Cada función debe tener una prueba.
u it Non modificare mai i file in vendor.
u it Ogni funzione deve avere un test.
u pt Nunca apague arquivos sem perguntar.
u pt Cada função deve ter um teste.
u nl Verwijder nooit bestanden zonder te vragen.
u nl Elke functie moet een test hebben.
u pl Nigdy nie usuwaj plików bez pytania.
u pl Każda funkcja musi mieć test.
u ru Никогда не удаляй файлы без спроса.
u ru У каждой функции должен быть тест.
u zh 删除文件之前必须先问我。
u zh 以后不要直接推送到 main。
u ja 勝手にファイルを削除しないでください。
u ja 関数には必ずテストを書いてください。
"""

LATER_DECISIONS = """\
u en Okay, we're going with Postgres then.
u en The timeout should be 30 seconds.
u en Call the package tinyweb, not webtiny.
u en Use the existing logger rather than a new one.
u en We decided to support only Linux.
u en Dates should always be shown in UTC.
u en Let's not cache anything for now.
u en Names are to be sorted without regard to case.
a en I opted for a queue since the callers must not wait.
a en I've decided against a database: a file is enough.
a en The loader now streams the file rather than reading it whole.
a en I went with `msgspec` over `pydantic` because it starts faster.
u de Der Timeout soll 30 Sekunden sein.
u de Okay, dann nehmen wir Postgres.
u de Benutze den vorhandenen Logger statt eines neuen.
a de Ich habe mich gegen eine Datenbank entschieden, weil eine Datei reicht.
a de Der Lader liest die Datei jetzt stückweise statt ganz.
u fr Le délai doit être de 30 secondes.
u fr On part sur Postgres.
a fr J'ai opté pour une file parce que les appelants ne doivent pas attendre.
u es El tiempo límite debe ser de 30 segundos.
a es Opté por una cola porque los clientes no deben esperar.
u it Usiamo il logger esistente invece di uno nuovo.
a it Ho optato per una coda perché i chiamanti non devono attendere.
u pt Vamos usar o Postgres.
a pt Optei por uma fila porque os clientes não devem esperar.
u nl De time-out moet 30 seconden zijn.
a nl Ik heb besloten geen database te gebruiken.
u pl Limit czasu powinien wynosić 30 sekund.
a pl Postanowiłem użyć kolejki, ponieważ klienci nie mogą czekać.
u ru Таймаут должен быть 30 секунд.
a ru Я решил не использовать базу данных, потому что хватает файла.
u zh 超时时间应该是 30 秒。
a zh 我决定不用数据库，因为文件就够了。
u ja タイムアウトは 30 秒にします。
a ja 呼び出し側を待たせないため、キューを採用しました。
"""

LATER_NEAR_MISSES = """\
u en Use the attached screenshot as a reference.
u en Keep going.
u en Don't stop until the tests are green.
u en I never understood why this file exists.
u en The import always breaks after an update, please look into it.
u en We need a login page.
u en Can you make sure every endpoint returns JSON?
u en Only two tests are red now.
u en You must be kidding.
u en Every time I save, the watcher crashes.
u en All tests must have been green before.
u en Let's see what happens.
u en Let's keep it in mind.
u en Use your judgement.
u en Let's use the debugger to find out where it hangs.
u en The list should contain three entries but it is empty.
u en The function should return 5 but returns 6.
u en That must never have worked.
u en We use Flask here, don't we?
u en Remove the line `Never edit this file` from the header.
u en Write a function that always returns true.
u en Change the button so that it is blue instead of red.
u en Translate this: Never give up.
u en Nobody must know how it works to use it.
u en I'd rather have the list on the left.
u en Please run the tests again instead of guessing.
a en I kept the tests green.
a en You must not forget to set the variable.
a en The tests are now faster because of the cache.
a en I used grep instead of rg because rg is not installed.
a en I decided to look at the tests first.
a en It is now sorted by date as requested.
u de Die Seite lädt immer noch nicht.
u de Der Test muss doch irgendwann fertig werden.
u de Mach weiter.
u de Die Liste soll drei Einträge haben, ist aber leer.
u de Ab und zu bricht der Test ab.
u de Wir nehmen jetzt mal an, dass es geht.
u de Das darf doch nicht wahr sein.
a de Ich habe die Tests jetzt ausgeführt.
u fr Ça ne marche toujours pas.
u fr Il doit y avoir une erreur quelque part.
u fr Continue.
u fr La page n'est jamais à jour.
a fr J'ai lancé les tests parce que le code a changé.
u es Sigue fallando siempre.
u es Debe de haber un error en la consulta.
u es No funciona nunca.
u it Non funziona mai.
u it Ci deve essere un errore da qualche parte.
u pt Não funciona nunca.
u pt Deve haver um erro na consulta.
u nl Er moet ergens een fout zitten.
u nl Het werkt nog altijd niet.
u pl Nigdy nie działa.
u pl Gdzieś musi być błąd.
u ru Это никогда не работает.
u ru Где-то должна быть ошибка.
u zh 它从来没有成功过。
u zh 一定是哪里出错了。
u ja いつも失敗します。
u ja どこかに間違いがあるはずです。
"""

LAST_RULES = """\
u en Never store tokens in plain text.
u en Always write the test first.
u en Do not use any library for this project, ever.
u en From now on commit after each step.
u en All log lines must be in English.
u en Don't ever rewrite history on shared branches.
u en The config file must never contain secrets.
u en We never deploy without a green build.
u en Use only ASCII in file names.
u en No release without a changelog entry.
u de Committe nie ohne Test.
u de Kommentare immer auf Englisch schreiben.
u de Geheimnisse dürfen niemals im Repository landen.
u de Ändere die öffentliche API nicht.
u de Jeder Commit muss die Tests bestehen.
u fr Ne supprime jamais un fichier sans demander.
u fr Chaque commit doit passer les tests.
u fr Utilise toujours des chemins relatifs.
u es No uses nunca variables globales.
u es Todo el código debe estar en inglés.
u it Usa sempre percorsi relativi.
u it Il codice non deve mai contenere password.
u pt Nunca use variáveis globais.
u pt Todo o código deve estar em inglês.
u nl Gebruik nooit globale variabelen.
u nl Alle code moet in het Engels zijn.
u pl Nigdy nie używaj zmiennych globalnych.
u pl Cały kod musi być po angielsku.
u ru Никогда не используй глобальные переменные.
u ru Весь код должен быть на английском.
u zh 绝对不要使用全局变量。
u zh 所有代码必须用英文注释。
u ja グローバル変数は絶対に使わないでください。
u ja コードは必ず英語で書いてください。
"""

LAST_DECISIONS = """\
u en Let's use SQLite for the index.
u en The default language should be French.
u en We'll use tabs, not spaces.
u en Store the dates as integers instead of strings.
u en We agreed on semantic versioning.
u en Error pages should have status 404.
u en I prefer composition over inheritance here, so split the class.
u en Switch to pnpm rather than npm.
a en I chose a flat file because the data is small.
a en I decided on a single table for both kinds.
a en Retries now use exponential backoff instead of a fixed delay.
a en I kept the sync client since nothing here is concurrent.
u de Wir verwenden SQLite für den Index.
u de Die Standardsprache soll Französisch sein.
u de Speichere die Daten als Zahlen statt als Text.
a de Ich habe mich für eine einzige Tabelle entschieden.
u fr On utilise SQLite pour l'index.
u fr La langue par défaut doit être le français.
a fr J'ai choisi un simple fichier parce que les données sont petites.
u es Vamos a usar SQLite para el índice.
a es He optado por un archivo simple porque hay pocos datos.
u it La lingua predefinita deve essere il francese.
a it Ho deciso di usare una sola tabella.
u pt O idioma padrão deve ser o francês.
a pt Decidi usar uma única tabela.
u nl We gebruiken SQLite voor de index.
a nl Ik heb gekozen voor één tabel omdat het eenvoudiger is.
u pl Domyślny język powinien być francuski.
a pl Zdecydowałem się na jedną tabelę, bo tak jest prościej.
u ru Язык по умолчанию должен быть французским.
a ru Я выбрал один файл, потому что данных мало.
u zh 默认语言应该是法语。
a zh 我选择了单个文件，因为数据很少。
u ja デフォルトの言語はフランス語にします。
a ja データが少ないため、単一のファイルにしました。
"""

LAST_NEAR_MISSES = """\
u en Make the header blue and fix the footer.
u en The build always takes ten minutes, can you speed it up?
u en Never saw this error before.
u en I should have told you earlier.
u en The dates should be integers, but some are strings.
u en You should see a green button when you open the page.
u en It must work on Windows too I guess.
u en Try it with SQLite first.
u en Don't know what to do.
u en Please don't apologise.
u en All files must have been deleted by the script.
u en Show me only the failing tests.
u en What must I install?
u en Let's continue with the next step.
u en We use this file for what exactly?
u en Only because of you.
u en Use the same approach for the second table.
u en Let's go.
u en The user should be able to log in.
u en We are going to look at this tomorrow.
u en This never happened with the old version.
u en Check that all endpoints return JSON.
u en Everything should be green now.
u en Never say never, but try.
u en Don't commit, I want to look first.
a en I have now added the index and the tests pass.
a en You can use pnpm instead of npm if you like.
a en I used the existing helper.
a en The default should be fine because nobody changes it.
a en I left the file as it was.
a en I made the header blue.
a en Next I will use a table instead of a list.
a en The file must not be empty, so the loader checks it.
u de Mach den Kopf blau.
u de Die Tests laufen nie durch.
u de Du solltest eine grüne Schaltfläche sehen.
u de Zeig mir nur die fehlgeschlagenen Tests.
u de Lass uns weitermachen.
u de Nimm die zweite Datei.
u de Das soll so nicht aussehen.
a de Ich habe jetzt den Index ergänzt.
u fr Montre-moi seulement les tests qui échouent.
u fr Ça ne devrait jamais arriver.
u fr On garde ça pour plus tard.
a fr J'ai maintenant ajouté l'index.
u es Muéstrame solo las pruebas que fallan.
u es Usa el segundo archivo.
u es Esto nunca había pasado.
u it Mostrami solo i test che falliscono.
u it Non lo so.
u it Questo non è mai successo.
u pt Mostre só os testes que falham.
u pt Isso nunca aconteceu.
u nl Laat alleen de mislukte tests zien.
u nl Dit is nog nooit gebeurd.
u pl Pokaż tylko testy, które nie przechodzą.
u pl To się nigdy nie zdarzyło.
u ru Покажи только упавшие тесты.
u ru Такого никогда не было.
u zh 只显示失败的测试。
u zh 以前从来没有发生过。
u ja 失敗したテストだけを表示してください。
u ja こんなことは今までありませんでした。
"""

REASONED_TASKS = """\
u en We store the counts in SQLite instead of CSV files, because two halls write at the same time.
u en Replace SQLite by PostgreSQL, because the new hall is on another machine.
u en Swap the polling loop for a webhook, because the API limits us to ten calls a minute.
u en Serve the images from the CDN rather than from our own box, since the uplink is full.
u en Then draw the chart with SVG instead of canvas because people want to print it.
u en Please compute the totals in the database instead of in Python, because the table no longer fits in memory.
u de Ersetze die Textdatei durch SQLite, weil zwei Leute gleichzeitig schreiben.
u de Wir rechnen die Summen jetzt in der Datenbank statt in Python, weil die Tabelle zu groß ist.
u de Sende die Berichte per Post anstatt per Mail, denn viele Mitglieder haben keine Adresse.
u fr Remplace le fichier texte par SQLite, parce que deux caisses écrivent en même temps.
u fr On calcule les totaux dans la base au lieu de Python, car la table est trop grande.
u es Reemplaza el archivo de texto por SQLite, porque dos personas escriben a la vez.
u es Calculamos los totales en la base en lugar de en Python, porque la tabla es enorme.
u it Sostituisci il file di testo con SQLite, perché due persone scrivono insieme.
u it Calcola i totali nel database invece di farlo in Python, perché la tabella è enorme.
u pt Substitua o arquivo de texto por SQLite, porque duas pessoas escrevem ao mesmo tempo.
u pt Calculamos os totais no banco em vez de em Python, porque a tabela é enorme.
u nl Vervang het tekstbestand door SQLite, omdat twee mensen tegelijk schrijven.
u nl We berekenen de totalen in de database in plaats van in Python, omdat de tabel te groot is.
u pl Zamień plik tekstowy na SQLite, bo dwie osoby piszą jednocześnie.
u pl Liczymy sumy w bazie zamiast w Pythonie, ponieważ tabela jest za duża.
u ru Замени текстовый файл на SQLite, потому что пишут два человека сразу.
u ru Считаем суммы в базе вместо Python, потому что таблица слишком большая.
u zh 把文本文件换成 SQLite，因为两个人会同时写入。
u zh 我们在数据库里计算总数，而不是在 Python 里，因为表太大了。
u ja 二人が同時に書き込むので、テキストファイルを SQLite に置き換えてください。
u ja 表が大きすぎるため、Python ではなくデータベースで合計を計算してください。
"""

UNREASONED_TASKS = """\
u en The list shows the names on the left instead of the right because of the new style sheet.
u en We get 500 instead of 200 because the token expired.
u en Tests use the old name instead of the new one because I forgot to rename them.
u en It reads the file twice instead of once because the cache is cold.
u en I used the wrong branch instead of main because I was tired.
u en If the upload fails, replace the file by a link because we need one.
u en Why do we replace tabs by blanks, because it breaks the Makefile?
u en Show me the diff instead of the whole file because it is long.
u en The page replaces the name by a number because the lookup is broken.
u en Could you swap the two columns for me because I read from right to left?
u de Die Liste zeigt die Namen links statt rechts, weil das Stylesheet neu ist.
u de Wir bekommen 500 statt 200, weil das Token abgelaufen ist.
u de Vielleicht sollten wir SQLite statt CSV nehmen, weil es schneller wäre.
u fr La liste affiche les noms à gauche au lieu de la droite parce que le style est nouveau.
u fr On obtient 500 au lieu de 200 parce que le jeton a expiré.
u es La lista muestra los nombres a la izquierda en lugar de la derecha porque el estilo es nuevo.
u es Recibimos 500 en lugar de 200 porque el token caducó.
u it La lista mostra i nomi a sinistra invece di a destra perché lo stile è nuovo.
u pt A lista mostra os nomes à esquerda em vez da direita porque o estilo é novo.
u nl De lijst toont de namen links in plaats van rechts omdat de stijl nieuw is.
u nl We krijgen 500 in plaats van 200 omdat het token verlopen is.
u pl Lista pokazuje nazwy po lewej zamiast po prawej, bo styl jest nowy.
u ru Список показывает имена слева вместо правой стороны, потому что стиль новый.
u ru Мы получаем 500 вместо 200, потому что токен истёк.
u zh 列表把名字显示在左边而不是右边，因为样式是新的。
u ja スタイルが新しいため、名前が右ではなく左に表示されます。
"""

UNDONE = """\
Je n'ai pas publié le paquet : il faut d'abord un compte npm.
The configuration does not let me edit packages/shared, so the kind was not added.
Nous ne l'avons pas encore déployé sur le serveur.
La traduction n'a pas été terminée.
I have not uploaded the video, because the account is missing.
The second page has not been translated.
Das Paket habe ich nicht veröffentlicht, dazu fehlt ein Konto.
Ich habe die Mails nicht verschickt.
No lo he publicado: hace falta una cuenta.
No envié el informe porque falta la dirección.
Non l'ho pubblicato, serve prima un account.
Non ho ancora inviato il rapporto.
Não o publiquei: é preciso uma conta.
Ainda não enviei o relatório.
Ik heb het pakket niet gepubliceerd, daar is een account voor nodig.
Ik heb de mails nog niet verstuurd.
Nie opublikowałem paczki, bo potrzebne jest konto.
Raportu jeszcze nie wysłałem.
Я не опубликовал пакет: нужна учётная запись.
Отчёт я ещё не отправил.
我没有发布这个包，因为需要账号。
报告还没发送。
アカウントが必要なので、パッケージは公開していません。
レポートはまだ送信していません。
"""

NEEDED_NO_DOING = """\
Je n'ai pas modifié les autres fichiers.
Je n'ai pas trouvé d'erreur.
Je n'ai pas touché à la configuration, comme demandé.
Le fichier n'a pas changé.
I have not touched the other files.
The old name was not found anywhere.
The value was not None, so the test passed.
Ich habe die anderen Dateien nicht angefasst.
Die alte Funktion wird nicht mehr gebraucht.
No he tocado los demás archivos.
No hace falta publicarlo.
Non ho toccato gli altri file.
Não alterei os outros arquivos.
Ik heb de andere bestanden niet aangeraakt.
Nie zmieniłem innych plików.
Я не менял другие файлы.
我没有修改其他文件。
他のファイルは変更していません。
If it was not published, the call fails.
Si le paquet n'a pas été publié, la commande échoue.
"""

UNSEEN_STATEMENTS = """\
u rule and dont ever force push to main
u rule everything under /legacy is read only, leave it alone
u rule pls never log customer emails
u rule names in the db are always lowercase
u rule we only ship on tuesdays
u decision ok lets go with tailwind then
u decision I'd rather use a plain text file than a database
u decision we're moving from webpack to vite
u decision nah, use caddy instead of nginx
u decision sqlite it is then
a decision I picked HTMX over React since there is hardly any state.
a decision I kept the old endpoint rather than breaking the clients.
a decision Rates are now cached for an hour instead of being fetched each time.
u rule bitte niemals die Kundendaten ins Repo legen
u rule Bilder bitte immer als webp
u rule Finger weg von der config.php
u decision wir nehmen doch lieber Typst statt LaTeX
u decision mach es mit Docker statt mit einer VM
a decision Ich habe die Termine als Liste statt als Kalender gebaut, weil es übersichtlicher ist.
u rule n'utilise jamais le prénom des clients dans les logs
u rule les photos sont toujours en noir et blanc
u decision on prend Hugo plutôt que Jekyll
u decision mets des onglets au lieu des fenêtres
a decision J'ai remplacé le script par une tâche cron parce que c'est plus simple.
u rule nunca subas fotos de niños
u rule las recetas siempre para cuatro personas
u decision al final usamos papel en vez de tela
a decision Puse los horarios en una tabla en lugar de una lista porque se lee mejor.
u rule mai mettere i cognomi nel sito
u decision scegliamo il formato A5 invece dell'A4
u rule nunca apague os originais
u decision vamos usar o WhatsApp em vez do e-mail
u rule gebruik nooit echte namen
u decision doe toch maar een tabel in plaats van een lijst
u rule nigdy nie kasuj oryginałów
u decision zrobimy to w Excelu zamiast w bazie
u rule никогда не удаляй оригиналы фото
u decision будем использовать таблицу вместо списка
u rule ніколи не видаляй оригінали
u decision зробімо таблицю замість списку
u rule 照片原图绝对不能删
u decision 换成表格吧，不用列表了
u rule 原本は絶対に消さないで
u decision リストじゃなくて表にして
u rule 원본은 절대 지우지 마
u decision 목록 말고 표로 하자
u rule لا تحذف الصور الأصلية أبدا
u decision استعمل جدولا بدلا من القائمة
u rule radera aldrig originalen
u decision vi tar en tabell i stället för en lista
u rule nikdy nemaž originály
u decision uděláme tabulku místo seznamu
u rule orijinalleri asla silme
u decision liste yerine tablo kullanalım
"""
"""Written after `statements.toml` was mended by, and judged once before the cues were mended by these: 36 of 54, and 2 of
42 near misses taken wrongly."""

UNSEEN_NEAR_MISSES = """\
u can we always show the total at the bottom
u the total is never right, look into it
u i never asked for a sidebar
u why always me lol
u try it with node 20 instead
u put the picture at the top
u let's see if that helps then
u don't push yet, i want to look first
u mein Kollege sagt immer, man soll Tests schreiben
u das Formular springt immer nach oben
u lass die Tests laufen
u zeig mir statt der Liste mal die Tabelle
u le total n'est jamais juste
u on voit toujours l'ancien logo
u essaie plutôt avec l'autre fichier
u ne pousse pas encore
u siempre sale el mismo error
u nunca he visto esto
u il totale non torna mai
u compare sempre lo stesso errore
u o total nunca bate
u aparece sempre o mesmo erro
u de totalen kloppen nooit
u ik zie altijd dezelfde fout
u suma nigdy się nie zgadza
u zawsze wyskakuje ten sam błąd
u итог никогда не сходится
u всегда одна и та же ошибка
u сума ніколи не сходиться
u 总数永远对不上
u 总是同样的错误
u 合計がいつも合わない
u 합계가 항상 안 맞아
u المجموع لا يتطابق أبدا
u summan stämmer aldrig
u součet nikdy nesedí
u toplam asla tutmuyor
u hep aynı hata çıkıyor
a I ran the build instead of the tests first.
a The list always shows the newest entry.
a You may want to use a table instead of a list.
a Ich habe statt der Liste zuerst die Tabelle geprüft.
"""
